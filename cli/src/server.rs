//! Which coordinator is asked: by its URL, or by the descriptor that it wrote.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use pinfold_http::client::{Client, ClientError, ClientOptions};
use pinfold_http::descriptor::Descriptor;
use pinfold_http::problem::Code;
use pinfold_http::service::Token;
use pinfold_http::tls::{ClientTls, Identity, Pem, TlsError};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Failure;

/// How long somebody at a terminal waits for a coordinator that does not answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Which coordinator.
#[derive(Args)]
pub(crate) struct Server {
    /// The coordinator's URL, like http://127.0.0.1:7311
    #[arg(long, value_name = "URL", conflicts_with = "descriptor")]
    server: Option<String>,
    /// The file in which the coordinator wrote where it is
    #[arg(long, value_name = "FILE")]
    descriptor: Option<PathBuf>,
    /// The file of the coordinator's token
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The CA that vouches for an https coordinator, or its own certificate where it is
    /// self-signed; the system's CAs without it
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// The certificate to show to a coordinator that asks for one
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of that certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

impl Server {
    /// Whether a coordinator was named.
    pub(crate) const fn is_given(&self) -> bool {
        self.server.is_some() || self.descriptor.is_some()
    }

    /// The flags that say the same to another process of this program.
    pub(crate) fn flags(&self) -> Vec<OsString> {
        let Self { server, descriptor, token_file, tls_ca, tls_cert, tls_key } = self;
        let flag = |name: &str, value: &OsStr| {
            let mut flag = OsString::from(format!("--{name}="));
            flag.push(value);
            flag
        };
        let files = [
            ("descriptor", descriptor),
            ("token-file", token_file),
            ("tls-ca", tls_ca),
            ("tls-cert", tls_cert),
            ("tls-key", tls_key),
        ];
        let server = server.iter().map(|url| flag("server", OsStr::new(url)));
        let given = |(name, file): (&str, &Option<PathBuf>)| {
            file.as_ref().map(|file| flag(name, file.as_os_str()))
        };
        let files = files.into_iter().filter_map(given);
        server.chain(files).collect()
    }

    /// A client for somebody who works while the coordinator may be started again.
    pub(crate) fn connect_patiently(&self) -> Result<(String, Client), Failure> {
        let (url, options) = self.options()?;
        let ClientOptions { try_within, give_up_after, .. } = ClientOptions::default();
        let options = ClientOptions { try_within, give_up_after, ..options };
        let client = self.connect_with(&url, options)?;
        Ok((url, client))
    }

    fn described(&self) -> Result<Option<Descriptor>, Failure> {
        let described = self.descriptor.as_deref().map(Descriptor::read).transpose();
        described.map_err(|error| Failure::Input(error.to_string()))
    }

    /// Where it is, and how it is asked.
    pub(crate) fn options(&self) -> Result<(String, ClientOptions), Failure> {
        let described = self.described()?;
        let url = self.server.as_ref().or(described.as_ref().map(|it| &it.url));
        let url = url.ok_or_else(|| Failure::Input("name a coordinator: --server URL".into()))?;
        let file = described.as_ref().and_then(|it| it.token_file.as_ref());
        let file = self.token_file.as_ref().or(file);
        let token = file.map(|file| token(file)).transpose()?;
        let ca = described.as_ref().and_then(|it| it.ca_file.as_ref());
        let tls = self.tls(self.tls_ca.as_ref().or(ca))?;
        let namespace = described.as_ref().and_then(|it| it.namespace.parse().ok());
        let options = ClientOptions {
            token,
            tls,
            namespace,
            try_within: PATIENCE,
            give_up_after: PATIENCE,
            ..ClientOptions::default()
        };
        Ok((url.clone(), options))
    }

    /// Whom to trust, and what to show, where either is named.
    fn tls(&self, ca: Option<&PathBuf>) -> Result<Option<ClientTls>, Failure> {
        let identity = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Some(identity(certificate, key)?),
            _ => None,
        };
        if ca.is_none() && identity.is_none() {
            return Ok(None);
        }
        let ca = ca.map(|ca| pem("--tls-ca", ca)).transpose()?;
        Ok(Some(ClientTls::new(ca.as_ref(), identity)?))
    }

    /// A client of it.
    pub(crate) fn connect(&self) -> Result<Client, Failure> {
        let (url, options) = self.options()?;
        self.connect_with(&url, options)
    }

    /// A client that asks so, of the life of the job that the descriptor names.
    fn connect_with(&self, url: &str, options: ClientOptions) -> Result<Client, Failure> {
        let client = Client::connect(url, options).map_err(failure)?;
        match &self.described()? {
            Some(it) if it.epoch != client.epoch().to_string() => Err(Failure::Input(format!(
                "the coordinator at {url} serves the epoch {}, and the descriptor says {}: it is \
                 of an older life of the job",
                client.epoch(),
                it.epoch
            ))),
            _ => Ok(client),
        }
    }

    /// One of its views.
    pub(crate) fn view<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        read(path, self.connect()?.view(path).map_err(failure)?)
    }
}

/// A view, as what it is.
pub(crate) fn read<T: DeserializeOwned>(path: &str, value: Value) -> Result<T, Failure> {
    serde_json::from_value(value).map_err(|error| {
        Failure::Incomplete(format!("{path} cannot be read, is it another version? {error}"))
    })
}

/// The whole of a list, page by page.
pub(crate) fn whole<T: DeserializeOwned>(
    client: &Client,
    list: &str,
    items: &str,
) -> Result<Vec<T>, Failure> {
    let mut all = Vec::new();
    let mut path = list.to_string();
    loop {
        let mut page = client.view(&path).map_err(failure)?;
        all.extend(read::<Vec<T>>(&path, page[items].take())?);
        let Some(next) = page["next"].as_str() else { return Ok(all) };
        path = format!("{list}&after={next}");
    }
}

/// The token of a file.
pub(crate) fn token(file: &Path) -> Result<Token, Failure> {
    let wrong = |what: String| Failure::Input(format!("--token-file {}: {what}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    Token::new(&text).map_err(|error| wrong(error.to_string()))
}

/// A certificate and its key.
pub(crate) fn identity(certificate: &Path, key: &Path) -> Result<Identity, Failure> {
    let (certificate, key) = (pem("--tls-cert", certificate)?, pem("--tls-key", key)?);
    Ok(Identity::new(&certificate, &key)?)
}

/// What a file has in PEM, under the name of the flag that names it.
pub(crate) fn pem(flag: &str, file: &Path) -> Result<Pem, Failure> {
    Pem::read(file).map_err(|error| Failure::Input(format!("{flag} {error}")))
}

impl From<TlsError> for Failure {
    fn from(error: TlsError) -> Self {
        Self::Input(error.to_string())
    }
}

/// What is wrong where a client has no answer.
pub(crate) fn failure(error: ClientError) -> Failure {
    let text = error.to_string();
    match error {
        ClientError::Url { .. } | ClientError::Tls { .. } | ClientError::OtherNamespace { .. } => {
            Failure::Input(text)
        }
        ClientError::Problem(problem) => match problem.code {
            Code::Malformed | Code::Unauthorized | Code::NotFound => Failure::Input(text),
            _ => Failure::Incomplete(text),
        },
        ClientError::Unanswered { .. } | ClientError::Thread(_) => Failure::Incomplete(text),
    }
}
