//! What the programs of the benchmarks share.
//!
//! | module | what it is |
//! |---|---|
//! | `caller` | what a client costs |
//! | `process` | a server that was started, and what the system's accounting says of it |
//! | `request` | what is sent to servers |
//! | `answer` | reading what they answer |
//! | `swarm` | many connections, waited for by one thread |
//! | `load` | what is done with them |

pub mod answer;
pub mod caller;
pub mod load;
pub mod process;
pub mod request;
pub mod swarm;
