//! The address at which this machine can reach a listening socket.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The address at which this machine can connect to a listening socket. For a socket that listens
/// on all addresses, this is the loopback address, because a browser cannot open `0.0.0.0` or
/// `[::]`.
pub(crate) fn local(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_on_all_addresses_is_reached_on_loopback() {
        for (listens, reached) in [
            ("0.0.0.0:8080", "127.0.0.1:8080"),
            ("[::]:8080", "[::1]:8080"),
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("192.0.2.7:80", "192.0.2.7:80"),
        ] {
            let address = local(listens.parse().expect("an address"));
            assert_eq!(address.to_string(), reached);
        }
    }
}
