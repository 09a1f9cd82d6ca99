//! The address and the scheme of a client whose request came through proxies. They are taken from
//! `X-Forwarded-For` and `X-Forwarded-Proto` only if the peer is a trusted proxy, because any other
//! peer can send anything in these headers. If the peer is not trusted, these headers only show
//! that a proxy may have forwarded the request. `Forwarded` (RFC 7239) is not parsed. Its presence
//! only shows that there is a proxy.

use std::net::IpAddr;

use http::HeaderMap;
use ipnet::IpNet;

/// The other end of a TCP connection: a client or a proxy.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// The address of the peer.
    pub address: IpAddr,
    /// Whether the connection to this service is encrypted.
    pub encrypted: bool,
    /// Whether this service's end of the connection has a loopback address. If so, other machines
    /// cannot intercept the traffic.
    pub loopback: bool,
}

/// The client's address. For a trusted proxy as the peer, it is the rightmost address in
/// `X-Forwarded-For` that does not belong to a trusted proxy. For any other peer, it is the address
/// of the peer.
pub fn client_address(peer: Peer, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let mut client = peer.address.to_canonical();
    let lines = headers.get_all("x-forwarded-for").iter().rev();
    let hops = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.rsplit(','));
    for hop in hops {
        if !is_trusted(client, trusted) {
            break;
        }
        let Some(address) = parse(hop.trim()) else {
            break;
        };
        client = address;
    }
    client
}

/// Whether no other machine can have read the request on its way to this service.
pub fn is_private(peer: Peer, headers: &HeaderMap, trusted: &[IpNet]) -> bool {
    if is_encrypted(peer, headers, trusted) {
        return true;
    }
    // A proxy on this machine may forward requests of other machines.
    let proxied = is_trusted(peer.address.to_canonical(), trusted) && may_be_remote(headers);
    peer.loopback && !proxied
}

/// Whether the client is on this machine, according to the connection and the headers of proxies.
pub fn is_local(peer: Peer, headers: &HeaderMap) -> bool {
    peer.loopback && !may_be_remote(headers)
}

/// Whether the client sent the request encrypted, to this service or to the trusted proxy.
pub fn is_encrypted(peer: Peer, headers: &HeaderMap, trusted: &[IpNet]) -> bool {
    let https = |scheme: &str| scheme.eq_ignore_ascii_case("https");
    peer.encrypted
        || is_trusted(peer.address.to_canonical(), trusted)
            && last_scheme(headers).is_some_and(https)
}

/// Whether the client may be on another machine or may have used plain HTTP, according to the
/// headers that proxies add.
fn may_be_remote(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all("x-forwarded-for").iter();
    let is_local = |hop: &str| parse(hop.trim()).is_some_and(|address| address.is_loopback());
    headers.contains_key("forwarded")
        || headers.contains_key("x-forwarded-proto")
        || !lines.all(|line| {
            line.to_str()
                .is_ok_and(|line| line.split(',').all(is_local))
        })
}

fn last_scheme(headers: &HeaderMap) -> Option<&str> {
    let line = headers.get_all("x-forwarded-proto").iter().next_back()?;
    line.to_str().ok()?.rsplit(',').next().map(str::trim)
}

fn is_trusted(address: IpAddr, trusted: &[IpNet]) -> bool {
    trusted.iter().any(|net| net.contains(&address))
}

/// Parses an address in `X-Forwarded-For`, which may have a port or brackets.
fn parse(hop: &str) -> Option<IpAddr> {
    let bare = hop
        .strip_prefix('[')
        .and_then(|rest| rest.split(']').next());
    let address = bare.unwrap_or(hop).parse::<IpAddr>().ok();
    let address = address.or_else(|| Some(hop.parse::<std::net::SocketAddr>().ok()?.ip()));
    Some(address?.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        Peer {
            address: address.parse().unwrap(),
            encrypted: false,
            loopback: false,
        }
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn proxies() -> Vec<IpNet> {
        vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()]
    }

    #[test]
    fn an_untrusted_client_cannot_choose_its_address() {
        let headers = headers(&[
            ("x-forwarded-for", "1.2.3.4"),
            ("x-forwarded-proto", "https"),
        ]);
        let stranger = peer("203.0.113.9");
        assert_eq!(
            client_address(stranger, &headers, &proxies()),
            stranger.address
        );
        assert!(!is_private(stranger, &headers, &proxies()));
    }

    #[test]
    fn behind_trusted_proxies_the_last_foreign_address_counts() {
        let headers = headers(&[
            ("x-forwarded-for", "6.6.6.6, 198.51.100.7:4711"),
            ("x-forwarded-for", "10.1.1.1"),
        ]);
        let expected: IpAddr = "198.51.100.7".parse().unwrap();
        assert_eq!(
            client_address(peer("10.2.2.2"), &headers, &proxies()),
            expected
        );
    }

    #[test]
    fn what_is_no_address_ends_the_walk() {
        let headers = headers(&[("x-forwarded-for", "6.6.6.6, unknown, 10.1.1.1")]);
        let expected: IpAddr = "10.1.1.1".parse().unwrap();
        assert_eq!(
            client_address(peer("10.2.2.2"), &headers, &proxies()),
            expected
        );
    }

    #[test]
    fn an_ipv6_address_may_stand_in_brackets() {
        let headers = headers(&[("x-forwarded-for", "[2001:db8::7]:443")]);
        let expected: IpAddr = "2001:db8::7".parse().unwrap();
        assert_eq!(
            client_address(peer("::ffff:10.2.2.2"), &headers, &proxies()),
            expected
        );
    }

    #[test]
    fn a_trusted_proxy_tells_the_scheme_even_on_loopback() {
        let mut local = peer("10.2.2.2");
        local.loopback = true;
        let plain = headers(&[("x-forwarded-proto", "http")]);
        let secure = headers(&[("x-forwarded-proto", "https")]);
        assert!(!is_private(local, &plain, &proxies()));
        assert!(is_private(peer("10.2.2.2"), &secure, &proxies()));
        assert!(is_private(local, &HeaderMap::new(), &proxies()));
        assert!(!is_encrypted(local, &HeaderMap::new(), &proxies()));
        assert!(is_encrypted(local, &secure, &proxies()));
    }

    #[test]
    fn a_remote_client_of_a_local_proxy_is_not_local() {
        let mut local = peer("10.2.2.2");
        local.loopback = true;
        for (name, value, private) in [
            ("x-forwarded-for", "1.2.3.4", false),
            ("x-forwarded-for", "1.2.3.4, 127.0.0.1", false),
            ("x-forwarded-for", "unknown", false),
            ("x-forwarded-for", "127.0.0.1, [::1]:8080", true),
            ("forwarded", "for=1.2.3.4;proto=http", false),
            ("forwarded", "for=127.0.0.1;proto=https", false),
        ] {
            let headers = headers(&[(name, value)]);
            let found = is_private(local, &headers, &proxies());
            assert_eq!(found, private, "{name}: {value}");
        }
        let forged = headers(&[("x-forwarded-for", "1.2.3.4")]);
        assert!(is_private(local, &forged, &[]), "nobody's word counts");
    }
}
