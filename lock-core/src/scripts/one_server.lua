-- Before common.lua, on a server of its own: PUBLISH counts all receivers.
local counted = true
