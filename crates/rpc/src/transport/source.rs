//! The client address of a request: the peer, or the address reported by trusted proxies. Main
//! type: [`Network`], the address of one or many proxies.

use http::HeaderMap;
use std::{
    net::{IpAddr, Ipv4Addr},
    str::FromStr,
};

/// The client's address, among the extensions of a request.
#[derive(Clone, Copy, Debug)]
pub struct Source(pub IpAddr);

impl Default for Source {
    fn default() -> Self {
        Self(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
    }
}

/// A range of addresses such as `10.0.0.0/8`, or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// The text is neither an address nor a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither an IP address nor a network such as 10.0.0.0/8")]
pub struct NetworkError(String);

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let wrong = || NetworkError(text.to_owned());
        let (address, bits) = text
            .trim()
            .split_once('/')
            .map_or((text.trim(), None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).map_err(|_| wrong())?;
        if bits <= most {
            Ok(Self { address, bits })
        } else {
            Err(wrong())
        }
    }
}

impl Network {
    fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0)
                    & (a.to_bits() ^ b.to_bits())
                    == 0
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                u128::MAX
                    .checked_shl(128 - u32::from(self.bits))
                    .unwrap_or(0)
                    & (a.to_bits() ^ b.to_bits())
                    == 0
            }
            _ => false,
        }
    }
}

/// The client's address. Each proxy appends the address of its own client to X-Forwarded-For, so
/// the last address that is not a trusted proxy is the client's.
pub fn of(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> IpAddr {
    let is_proxy = |address: IpAddr| trusted.iter().any(|network| network.contains(address));
    let mut source = peer.to_canonical();
    let said = headers
        .get_all("x-forwarded-for")
        .iter()
        .map(|value| value.to_str().unwrap_or_default());
    let said: Vec<&str> = said.flat_map(|value| value.split(',')).collect();
    let mut said = said
        .into_iter()
        .rev()
        .map(|text| text.trim().parse::<IpAddr>());
    while is_proxy(source) {
        match said.next() {
            Some(Ok(address)) => source = address.to_canonical(),
            // If the entry is missing or cannot be parsed, the proxy itself counts as the client.
            Some(Err(_)) | None => break,
        }
    }
    source
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn proxies_are_believed_only_when_they_are_trusted() {
        let trusted: Vec<Network> = ["10.0.0.0/8", "192.168.1.1", "fd00::/8"]
            .map(|text| text.parse().expect("a network"))
            .into();
        for (peer, said, want) in [
            ("1.2.3.4", &["5.6.7.8"][..], "1.2.3.4"),
            ("10.1.1.1", &["5.6.7.8"], "5.6.7.8"),
            ("::ffff:10.1.1.1", &["5.6.7.8"], "5.6.7.8"),
            (
                "10.1.1.1",
                &["9.9.9.9, 5.6.7.8", "192.168.1.1,10.0.0.2"],
                "5.6.7.8",
            ),
            ("10.1.1.1", &[], "10.1.1.1"),
            ("10.1.1.1", &["5.6.7.8, nonsense"], "10.1.1.1"),
            ("192.168.1.2", &["5.6.7.8"], "192.168.1.2"),
            ("fd00::1", &["2001:db8::1"], "2001:db8::1"),
        ] {
            let mut headers = HeaderMap::new();
            for text in said {
                headers.append("x-forwarded-for", HeaderValue::from_static(text));
            }
            let source = of(peer.parse().expect("an address"), &headers, &trusted);
            assert_eq!(source.to_string(), want, "{peer} {said:?}");
        }
        for wrong in ["", "10.0.0.0/33", "10.0.0/8", "a", "::/129"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
        assert!(
            "0.0.0.0/0"
                .parse::<Network>()
                .expect("a network")
                .contains(IpAddr::from([1, 2, 3, 4]))
        );
    }
}
