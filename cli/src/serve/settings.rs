//! What a start is told: on the command line, in a file, or in both.
//!
//! One struct is read in both ways, so that a setting has one name and one form. It protects a job
//! from a slip: a name that is not known, a value that cannot be, or two that do not go together
//! are refused before anything is made. The command line wins over the file; paths in the file are
//! seen from the file's folder.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, ValueEnum};
use pinfold_core::id::Namespace;
use pinfold_core::policy::{Limits, Quarantine};
use pinfold_workload::unit::{parse_bytes, parse_within};
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

use super::logging::{Collector, LogFilter};
use crate::Failure;
use crate::store_place::StorePlace;

/// The settings that a person gives.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Settings {
    /// The job's data folder
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where to listen, 127.0.0.1:7311 unless told otherwise; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    #[serde(deserialize_with = "text")]
    listen: Option<SocketAddr>,
    /// By which name it is asked: it stands in the URL that is printed and described, in place of
    /// the address
    #[arg(long, value_name = "NAME")]
    pub(super) host: Option<String>,
    /// The job's namespace, the first part of every key
    #[arg(long, value_name = "NAME")]
    pub(super) namespace: Option<Namespace>,
    /// Live turns that a conversation keeps; 5 for a new job
    #[arg(long, value_name = "N", value_parser = turns)]
    #[serde(deserialize_with = "whole")]
    pub(super) turns: Option<u32>,
    /// Bytes that the live turns of one conversation may hold
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    #[serde(deserialize_with = "size")]
    pub(super) conversation_bytes: Option<u64>,
    /// Bytes that the live turns of the whole job may hold
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    #[serde(deserialize_with = "size")]
    pub(super) job_bytes: Option<u64>,
    /// What a checkpoint bars whose deletion has an unknown outcome
    #[arg(long, value_name = "WHAT")]
    pub(super) quarantine: Option<Bars>,
    /// The objects, from which this process deletes what nothing holds any more: a folder, or its
    /// URL like file:///var/objects
    #[arg(long, value_name = "STORE")]
    #[serde(deserialize_with = "text")]
    pub(super) store: Option<StorePlace>,
    /// Make the store where there is none; a new job does so by itself, and any other start takes a
    /// store that is not there for one whose disk is not mounted
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true")]
    create_store: Option<bool>,
    /// Whether this process deletes by itself: auto unless told otherwise
    #[arg(long, value_name = "HOW")]
    collect: Option<Collect>,
    /// The file of the token that every request has to bring along
    #[arg(long, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,
    /// Speak TLS: the file of its certificate, with those behind it that vouch for it
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// The file of that certificate's private key
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Take only clients with a certificate, which a CA of this file vouches for
    #[arg(long, value_name = "FILE")]
    pub(super) client_ca: Option<PathBuf>,
    /// Write here where the coordinator is, for those on this machine
    #[arg(long, value_name = "FILE")]
    pub(super) descriptor: Option<PathBuf>,
    /// What to log on standard error: warn unless told otherwise; info has a line for each request,
    /// and warn,pinfold_http=info those of the service alone
    #[arg(long, value_name = "LEVEL")]
    #[serde(deserialize_with = "text")]
    pub(super) log: Option<LogFilter>,
    /// Log JSON objects
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true")]
    log_json: Option<bool>,
    /// Send a span of each request to the collector at this URL: OTLP over HTTP, like
    /// http://127.0.0.1:4318
    #[arg(long, value_name = "URL")]
    #[serde(deserialize_with = "text")]
    pub(super) otlp: Option<Collector>,
}

/// What a quarantined checkpoint bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum Bars {
    /// No other attempt at its position until it is known
    Endpoint,
    /// Nothing but itself
    Generation,
}

/// Who deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Collect {
    /// It does
    Auto,
    /// Only workers that ask for delete work do
    Manual,
}

impl Settings {
    /// These, and beside them those of a file.
    pub(super) fn with_file(self, file: Option<&Path>) -> Result<Self, Failure> {
        let settings = match file {
            None => self,
            Some(file) => self.over(Self::read(file)?),
        };
        settings.check()?;
        Ok(settings)
    }

    fn read(file: &Path) -> Result<Self, Failure> {
        let wrong = |what: String| Failure::Input(format!("--config {}: {what}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
        let read: Self = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        Ok(read.seen_from(file.parent().unwrap_or(Path::new(""))))
    }

    /// With the paths as they are seen from a folder.
    fn seen_from(self, folder: &Path) -> Self {
        let from = |path: Option<PathBuf>| path.map(|path| folder.join(path));
        Self {
            data: from(self.data),
            store: self.store.map(|store| store.seen_from(folder)),
            token_file: from(self.token_file),
            tls_cert: from(self.tls_cert),
            tls_key: from(self.tls_key),
            client_ca: from(self.client_ca),
            descriptor: from(self.descriptor),
            ..self
        }
    }

    /// What these leave open is as in the others.
    fn over(self, other: Self) -> Self {
        Self {
            data: self.data.or(other.data),
            listen: self.listen.or(other.listen),
            host: self.host.or(other.host),
            namespace: self.namespace.or(other.namespace),
            turns: self.turns.or(other.turns),
            conversation_bytes: self.conversation_bytes.or(other.conversation_bytes),
            job_bytes: self.job_bytes.or(other.job_bytes),
            quarantine: self.quarantine.or(other.quarantine),
            store: self.store.or(other.store),
            create_store: self.create_store.or(other.create_store),
            collect: self.collect.or(other.collect),
            token_file: self.token_file.or(other.token_file),
            tls_cert: self.tls_cert.or(other.tls_cert),
            tls_key: self.tls_key.or(other.tls_key),
            client_ca: self.client_ca.or(other.client_ca),
            descriptor: self.descriptor.or(other.descriptor),
            log: self.log.or(other.log),
            log_json: self.log_json.or(other.log_json),
            otlp: self.otlp.or(other.otlp),
        }
    }

    /// What goes together is there together.
    fn check(&self) -> Result<(), Failure> {
        let (store, cert, key) =
            (self.store.is_some(), self.tls_cert.is_some(), self.tls_key.is_some());
        let needs = [
            ("--create-store", self.create_store.is_some(), "--store", store),
            ("--collect", self.collect.is_some(), "--store", store),
            ("--tls-cert", cert, "--tls-key", key),
            ("--tls-key", key, "--tls-cert", cert),
            ("--client-ca", self.client_ca.is_some(), "--tls-cert", cert),
        ];
        match needs.iter().find(|(_, is_there, _, needed)| *is_there && !needed) {
            None => self.data().map(|_| ()),
            Some((what, _, needed, _)) => Err(Failure::Input(format!(
                "{what} needs {needed}: give both, on the command line or in the --config file"
            ))),
        }
    }

    pub(super) fn data(&self) -> Result<&Path, Failure> {
        let missing = "which job? name its data folder: --data DIR, or `data` in the --config file";
        self.data.as_deref().ok_or_else(|| Failure::Input(missing.into()))
    }

    pub(super) fn listen(&self) -> SocketAddr {
        self.listen.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 7311)))
    }

    /// The files of its certificate and that one's key.
    pub(super) fn identity(&self) -> Option<(&Path, &Path)> {
        Some((self.tls_cert.as_deref()?, self.tls_key.as_deref()?))
    }

    pub(super) fn creates_store(&self) -> bool {
        self.create_store == Some(true)
    }

    pub(super) fn logs_json(&self) -> bool {
        self.log_json == Some(true)
    }

    /// Whether this process deletes.
    pub(super) fn collects(&self) -> bool {
        self.store.is_some() && self.collect != Some(Collect::Manual)
    }
}

impl Bars {
    pub(super) const fn means(self) -> Quarantine {
        match self {
            Self::Endpoint => Quarantine::Endpoint,
            Self::Generation => Quarantine::Generation,
        }
    }
}

fn turns(text: &str) -> Result<u32, String> {
    parse_within(text, &(1..=Limits::default().turns)).map_err(|error| error.to_string())
}

/// Reads a value of the file as the command line does, from text, a whole number or both.
struct Typed<T> {
    parse: fn(&str) -> Result<T, String>,
    from_text: bool,
    from_number: bool,
    expected: &'static str,
}

impl<T> Visitor<'_> for Typed<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        match self.from_number {
            true => (self.parse)(&number.to_string()).map_err(E::custom),
            false => Err(E::invalid_type(serde::de::Unexpected::Signed(number), &self)),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        match self.from_text {
            true => (self.parse)(text).map_err(E::custom),
            false => Err(E::invalid_type(serde::de::Unexpected::Str(text), &self)),
        }
    }
}

fn text<'de, D: Deserializer<'de>, T>(from: D) -> Result<Option<T>, D::Error>
where
    T: FromStr,
    T::Err: fmt::Display,
{
    let parse = |text: &str| text.parse::<T>().map_err(|error| error.to_string());
    let (from_text, from_number, expected) = (true, false, "text in quotes");
    from.deserialize_any(Typed { parse, from_text, from_number, expected }).map(Some)
}

fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let (from_text, from_number, expected) = (false, true, "a whole number");
    from.deserialize_any(Typed { parse: turns, from_text, from_number, expected }).map(Some)
}

fn size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let parse = |text: &str| parse_bytes(text).map_err(|error| error.to_string());
    let expected = "a number of bytes, or a text such as \"64KiB\" or \"2TiB\"";
    let (from_text, from_number) = (true, true);
    from.deserialize_any(Typed { parse, from_text, from_number, expected }).map(Some)
}
