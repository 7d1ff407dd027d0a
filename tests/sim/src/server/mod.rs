//! A Redis server as a state machine.
