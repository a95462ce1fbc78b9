//! Other processes: relays that can be stopped and killed for real.
