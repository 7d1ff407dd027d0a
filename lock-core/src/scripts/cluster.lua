-- Before common.lua, on a node of a cluster: the receivers of a PUBLISH may be connected to other nodes, where it does
-- not count them.
local counted = false
