//! Nothing: the examples stand in the folder above.
