-- Put before common.lua, on a server of its own: a PUBLISH counts all who hear it.
local counted = true
