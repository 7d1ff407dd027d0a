-- Put before common.lua, on a node of a cluster: who hears a PUBLISH may be connected to another node,
-- and is not counted.
local counted = false
