//! The listening sockets of the service.

use std::io::ErrorKind;
use std::net::SocketAddr;

use tidegate_server::Certificate;
use tokio::net::TcpListener;

use crate::address;
use crate::cli_error::{CliError, Result};
use crate::settings::Settings;

pub(crate) struct Sockets {
    pub(super) bound: Vec<TcpListener>,
    /// The listening socket for `metrics_listen`, if it is set.
    pub(super) operations: Option<TcpListener>,
    /// The addresses of the sockets. A port 0 in the settings is replaced by the port that the
    /// system chose.
    pub(crate) addresses: Vec<SocketAddr>,
    pub(super) certificate: Option<Certificate>,
}

impl Sockets {
    /// Binds the addresses of the settings and reads the certificate.
    pub(crate) async fn bind(settings: &Settings) -> Result<Self> {
        let certificate = match (&settings.tls_certificate, &settings.tls_key) {
            (Some(certificate), Some(key)) => Some(Certificate::read(certificate, key)?),
            (None, None) => None,
            (Some(_), None) => return Err(CliError::incomplete("tls_certificate", "tls_key")),
            (None, Some(_)) => return Err(CliError::incomplete("tls_key", "tls_certificate")),
        };
        let (mut bound, mut addresses) = (Vec::new(), Vec::new());
        for address in &settings.listen {
            let socket = bind(address, "--listen").await?;
            addresses.push(socket.local_addr()?);
            bound.push(socket);
        }
        if bound.is_empty() {
            return Err(CliError::Usage("the setting listen is empty".to_owned()));
        }
        let operations = match &settings.metrics_listen {
            Some(address) => Some(bind(address, "--metrics-listen").await?),
            None => None,
        };
        if let Some(socket) = &operations {
            let address = socket.local_addr()?;
            tracing::info!(%address, "listening for metrics");
        }
        Ok(Self {
            bound,
            operations,
            addresses,
            certificate,
        })
    }

    /// The address of the first socket as a URL that a browser on this machine can open.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.certificate.is_some() {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://{}", address::local(self.addresses[0]))
    }
}

async fn bind(address: &SocketAddr, flag: &str) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        let advice = listen_advice(error.kind());
        let text = format!("cannot listen on {address} ({error}); {advice} with {flag}");
        CliError::Refused(text)
    })
}

fn listen_advice(problem: ErrorKind) -> &'static str {
    match problem {
        ErrorKind::AddrInUse => "stop what listens there, or choose another address",
        ErrorKind::PermissionDenied => {
            "ports below 1024 need the capability CAP_NET_BIND_SERVICE; grant it, or choose \
             another port"
        }
        _ => "choose another address",
    }
}
