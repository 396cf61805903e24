//! Who answers: the server that was named, the one on the home, or, without either, this process.

use perflab_store::HomeSettings;

use super::Client;
use super::local::{LocalServer, Owner, own};
use crate::failure::Failure;
use crate::settings::Settings;
use crate::trace;

/// A client for readers.
pub(crate) async fn find(settings: &Settings) -> Result<Client, Failure> {
    if let Some(server) = &settings.server {
        return Ok(Client::of_server(server.clone(), settings.token_for(server).cloned()));
    }
    let mut client = Client::of_home(settings.home.clone());
    if client.is_answered().await {
        return Ok(client);
    }
    trace::start_quietly();
    match own(&settings.home, &HomeSettings::default()).await? {
        Owner::Server { client, .. } => Ok(*client),
        Owner::ThisProcess(home) => Ok(Client::of_local(LocalServer::start(home).await?)),
    }
}
