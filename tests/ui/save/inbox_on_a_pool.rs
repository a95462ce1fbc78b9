#![allow(unused)]

use outbox_core::MessageId;
use outbox_seaorm::{Inbox, InboxError};
use sea_orm::DatabaseConnection;

fn twice(db: &DatabaseConnection, id: MessageId) {
    let effect = async |_: &_| Ok::<_, InboxError>(());
    let once = Inbox::default().once(db, "mail", id, effect);
}

fn main() {}
