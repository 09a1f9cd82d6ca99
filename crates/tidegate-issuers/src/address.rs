//! Decides to which addresses requests for the keys of issuers may go. Without this check, the
//! owner of a tenant could make the service send requests into the network of the service
//! (server-side request forgery).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{Ipv4Net, Ipv6Net};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// The networks to which requests for keys may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// Requests may go only to public addresses, and must be encrypted.
    #[default]
    PublicOnly,
    /// Requests may also go to private addresses, and to this machine without encryption.
    AllowPrivate,
}

impl Network {
    pub(crate) fn allows(self, address: IpAddr) -> bool {
        self == Self::AllowPrivate || is_public(address)
    }
}

/// The IPv4 networks that are not globally reachable, according to the IANA special-purpose address
/// registry.
const PRIVATE_V4: [(Ipv4Addr, u8); 14] = [
    (Ipv4Addr::UNSPECIFIED, 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 3),
];

/// The IPv6 network that contains all public addresses.
const PUBLIC_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
/// The networks within [`PUBLIC_V6`] that are not public. They are for Teredo and other protocols,
/// for documentation, and for 6to4. A 6to4 address contains an IPv4 address.
const PRIVATE_V6: [(Ipv6Addr, u8); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => !PRIVATE_V4
            .iter()
            .any(|&(net, length)| Ipv4Net::new_assert(net, length).contains(&address)),
        IpAddr::V6(address) => {
            let is_in = |(net, length)| Ipv6Net::new_assert(net, length).contains(&address);
            is_in(PUBLIC_V6) && !PRIVATE_V6.into_iter().any(is_in)
        }
    }
}

/// Resolves a host name, and returns only the addresses to which requests may go. The addresses are
/// checked after the resolution, so that a host name cannot resolve to one address for the check
/// and to another address for the connection.
#[derive(Debug)]
pub(crate) struct Resolver(pub(crate) Network);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let network = self.0;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<SocketAddr> = found
                .filter(|address| network.allows(address.ip()))
                .collect();
            if allowed.is_empty() {
                let text = format!("{} has only private addresses", name.as_str());
                return Err(text.into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// The IP address of a URL's host; `None` for a host name, which [`Resolver`] resolves.
pub(crate) fn literal(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[')
        .trim_end_matches(']')
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_recognised_in_every_form() {
        for private in [
            "127.0.0.1",
            "10.1.2.3",
            "100.64.0.1",
            "169.254.169.254",
            "172.31.255.255",
            "192.168.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::a00:1",
            "2002:7f00:1::",
            "fc00::1",
            "fe80::1",
            "ff02::1",
            "2001:db8::1",
        ] {
            assert!(
                !Network::PublicOnly.allows(private.parse().unwrap()),
                "{private}"
            );
        }
        for public in ["1.1.1.1", "8.8.8.8", "172.32.0.1", "2606:4700::1111"] {
            assert!(
                Network::PublicOnly.allows(public.parse().unwrap()),
                "{public}"
            );
        }
    }
}
