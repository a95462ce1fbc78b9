//! The connection on which PostgreSQL tells of wake-ups.

use sea_orm::{
    DatabaseConnection, DbErr, RuntimeErr,
    sqlx::{
        Error,
        postgres::{PgListener, PgPoolOptions},
    },
};

/// A connection that waits.
#[derive(Debug)]
pub(crate) struct Listener(PgListener);

impl Listener {
    /// Connects as `db` does, beside its pool: a connection that only waits must not be missing there.
    pub(crate) async fn connect(db: &DatabaseConnection, channel: &str) -> Result<Self, DbErr> {
        let options = db.get_postgres_connection_pool().connect_options();
        let own = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
        let pool = own.connect_lazy_with((*options).clone());
        let mut listener = PgListener::connect_with(&pool).await.map_err(failed)?;
        listener.listen(channel).await.map_err(failed)?;
        Ok(Self(listener))
    }

    /// Waits for a wake-up, and takes those that have come meanwhile as one. After a cut connection it returns at once.
    pub(crate) async fn next(&mut self) -> Result<(), DbErr> {
        if self.0.try_recv().await.map_err(failed)?.is_some() {
            while self.0.next_buffered().is_some() {}
        }
        Ok(())
    }
}

fn failed(error: Error) -> DbErr {
    DbErr::Conn(RuntimeErr::SqlxError(error.into()))
}
