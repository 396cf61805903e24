//! `NO_PROXY`: the hosts that are reached without a proxy.

use std::net::IpAddr;

/// Where `perflab with` puts its own servers.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// A list of hosts as programs read it: names with everything below them, addresses, networks,
/// each with a port if need be, or `*`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NoProxy {
    entries: Vec<String>,
}

impl NoProxy {
    pub(super) fn parse(text: &str) -> Self {
        let entries = text.split([',', ' ']).map(str::trim).filter(|entry| !entry.is_empty());
        Self { entries: entries.map(str::to_owned).collect() }
    }

    /// Whether a host is reached without a proxy.
    pub(super) fn covers(&self, host: &str, port: u16) -> bool {
        self.entries.iter().any(|entry| entry_covers(entry, host, port))
    }

    /// The list for programs whose proxy must see one host, but must not see loopback.
    pub(super) fn without(&self, host: &str, port: u16) -> String {
        let others = self.entries.iter().map(String::as_str);
        let kept = others.filter(|entry| !entry_covers(entry, host, port));
        let mut list: Vec<&str> = LOOPBACK.to_vec();
        list.extend(kept.filter(|entry| !LOOPBACK.contains(entry)));
        list.join(",")
    }
}

fn entry_covers(entry: &str, host: &str, port: u16) -> bool {
    if entry == "*" {
        return true;
    }
    if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
        return address_is_in(entry, address, port);
    }
    let (name, wanted_port) = split_port(entry);
    if wanted_port.is_some_and(|wanted| wanted != port) {
        return false;
    }
    let name = name.trim_start_matches("*.").trim_start_matches('.').to_ascii_lowercase();
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let below = host.strip_suffix(&name).is_some_and(|rest| rest.ends_with('.'));
    !name.is_empty() && (host == name || below)
}

/// `host:8080`; a bare IPv6 address has no port.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    match entry.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => match port.parse() {
            Ok(port) => (name, Some(port)),
            Err(_) => (entry, None),
        },
        _ => (entry, None),
    }
}

fn address_is_in(entry: &str, address: IpAddr, port: u16) -> bool {
    if let Some((network, bits)) = entry.split_once('/') {
        return match (network.parse::<IpAddr>(), bits.parse::<u32>()) {
            (Ok(network), Ok(bits)) => is_in_network(address, network, bits),
            _ => false,
        };
    }
    let (name, wanted_port) = split_port(entry);
    let is_port = wanted_port.is_none_or(|wanted| wanted == port);
    is_port && name.trim_matches(['[', ']']).parse() == Ok(address)
}

fn is_in_network(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) if bits <= 32 => {
            let differing = address.to_bits() ^ network.to_bits();
            differing.checked_shr(32 - bits).unwrap_or(0) == 0
        }
        (IpAddr::V6(address), IpAddr::V6(network)) if bits <= 128 => {
            let differing = address.to_bits() ^ network.to_bits();
            differing.checked_shr(128 - bits).unwrap_or(0) == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_covered_as_programs_read_it() {
        let covers = |list: &str, host: &str| NoProxy::parse(list).covers(host, 443);
        assert!(covers("a.example, b.example", "b.example"));
        assert!(covers("example", "b.EXAMPLE"));
        assert!(covers(".example", "b.example"));
        assert!(covers("*.example", "b.example"));
        assert!(covers("*", "anything"));
        assert!(covers("b.example:443", "b.example"));
        assert!(covers("10.0.0.0/8", "10.1.2.3"));
        assert!(covers("::1", "::1"));
        assert!(covers("0.0.0.0/0", "10.1.2.3"));
        assert!(covers("fd00::/8", "fd12::1"));
        assert!(!covers("", "b.example"));
        assert!(!covers("b.example:80", "b.example"));
        assert!(!covers("ample", "b.example"));
        assert!(!covers("10.0.0.0/8", "11.1.2.3"));
        assert!(!covers("10.0.0.0/99", "10.1.2.3"));
    }

    #[test]
    fn one_host_is_taken_off_the_list_and_loopback_is_put_on_it() {
        let list = "corp.example,.facebook.com,127.0.0.1,*";
        let changed = NoProxy::parse(list).without("graph.facebook.com", 443);
        assert_eq!(changed, "localhost,127.0.0.1,::1,corp.example");
    }
}
