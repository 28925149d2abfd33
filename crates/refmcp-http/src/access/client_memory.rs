//! The memory of clients: each connection and each session has an account in the memory budget, and those of one client
//! count together. A client is a principal or, without one, an address; programs on this machine and clients behind a
//! proxy share an address, so there each connection counts for itself.

use foldhash::HashMap;
use parking_lot::Mutex;
use refmcp_server::transport::memory_budget::{MemoryAccount, MemoryBudget, WeakMemoryAccount};

use crate::access::caller::{Caller, Client};
use crate::access::rate_limit::network;
use crate::access::trusted_proxy::TrustedProxy;
use crate::session::quotas::ClientKey;

/// Accounts after which those of clients that are gone are dropped for the first time.
const FIRST_SWEEP: usize = 64;

/// The accounts of clients that hold something.
#[derive(Debug)]
pub(crate) struct ClientMemory {
    pub(crate) budget: MemoryBudget,
    accounts: Mutex<Accounts>,
}

#[derive(Debug)]
struct Accounts {
    open: HashMap<ClientKey, WeakMemoryAccount>,
    /// The number of accounts at which those that are closed are dropped.
    sweep_at: usize,
}

impl ClientMemory {
    pub(crate) fn new(budget: MemoryBudget) -> Self {
        let accounts = Accounts { open: HashMap::default(), sweep_at: FIRST_SWEEP };
        Self { budget, accounts: Mutex::new(accounts) }
    }

    /// The account of a new connection.
    pub(crate) fn connection(&self, client: Client, proxies: &[TrustedProxy]) -> MemoryAccount {
        let address = client.address.filter(|address| !proxies.iter().any(|proxy| proxy.contains(*address)));
        self.account(address.map_or(ClientKey::Unknown, |address| ClientKey::Network(network(address))))
    }

    /// The account of a new session.
    pub(crate) fn session(&self, caller: &Caller) -> MemoryAccount {
        self.account(caller.client_key())
    }

    fn account(&self, client: ClientKey) -> MemoryAccount {
        match &client {
            ClientKey::Unknown => return self.budget.account(),
            // The network of ::1 has no other address.
            ClientKey::Network(address) if address.is_loopback() || address.is_unspecified() => {
                return self.budget.account();
            }
            _ => {}
        }
        let mut accounts = self.accounts.lock();
        if let Some(account) = accounts.open.get(&client).and_then(WeakMemoryAccount::upgrade) {
            return account.child();
        }
        if accounts.open.len() >= accounts.sweep_at {
            accounts.open.retain(|_, account| account.upgrade().is_some());
            accounts.sweep_at = FIRST_SWEEP.max(accounts.open.len() * 2);
        }
        let account = self.budget.account();
        accounts.open.insert(client, account.downgrade());
        account.child()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn client(address: &str) -> Client {
        Client::new(SocketAddr::new(address.parse().unwrap(), 1), None)
    }

    #[test]
    fn connections_of_one_address_count_together() {
        let memory = ClientMemory::new(MemoryBudget::new(1000));
        let proxies = ["198.51.100.7".parse().unwrap()];
        for (address, together) in
            [("192.0.2.1", true), ("127.0.0.1", false), ("::1", false), ("198.51.100.7", false)]
        {
            let [one, other] = [(); 2].map(|()| memory.connection(client(address), &proxies));
            let _held = one.reserve(400).unwrap();
            assert_eq!(other.reserve(300).is_err(), together, "{address}");
        }
    }

    #[test]
    fn accounts_of_clients_that_are_gone_are_dropped() {
        let memory = ClientMemory::new(MemoryBudget::new(1000));
        let kept = memory.connection(client("192.0.2.1"), &[]);
        for number in 0..10_000_u32 {
            drop(memory.connection(client(&format!("10.0.{}.{}", number / 256, number % 256)), &[]));
        }
        let accounts = memory.accounts.lock();
        assert!(accounts.open.len() <= FIRST_SWEEP * 2, "{}", accounts.open.len());
        assert!(accounts.open.values().any(|account| account.upgrade().is_some()), "{kept:?}");
    }
}
