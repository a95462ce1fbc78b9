//! A database for one test.

use outbox_seaorm::{TableNames, migrate};
use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr,
    TransactionOptions, TransactionTrait,
};
use std::{env, path::PathBuf, time::Duration};

/// The databases that the product supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// An embedded file.
    Sqlite,
    /// A server.
    Postgres,
    /// A server, MySQL or MariaDB.
    MySql,
}

impl Backend {
    /// Whether two transactions can write at once.
    pub fn has_concurrent_writers(self) -> bool {
        self != Self::Sqlite
    }

    fn server_url(self) -> String {
        let variable = match self {
            Self::Postgres => "OUTBOX_TEST_POSTGRES_URL",
            Self::MySql => "OUTBOX_TEST_MYSQL_URL",
            Self::Sqlite => unreachable!("SQLite has no server"),
        };
        env::var(variable).unwrap_or_else(|_| {
            panic!("{variable} is not set: run the tests with ./scripts/test.sh, which finds or starts the databases, or set it to a server on which databases may be created")
        })
    }
}

/// A database of its own for one test, dropped when the test succeeds and kept for a look when it fails.
#[derive(Debug)]
pub struct TestDatabase {
    /// Which kind.
    pub backend: Backend,
    /// Its URL, for other processes.
    pub url: String,
    /// A pool of connections.
    pub db: DatabaseConnection,
    name: String,
}

impl TestDatabase {
    /// An empty database, named after the test.
    pub async fn empty(backend: Backend, test: &str) -> Self {
        let name = name_of(test);
        let url = match backend {
            Backend::Sqlite => {
                let path = sqlite_path(&name);
                remove_sqlite(&path);
                format!("sqlite://{}?mode=rwc", path.display())
            }
            Backend::Postgres | Backend::MySql => {
                let server = connect(&backend.server_url(), 1).await;
                for sql in [drop_database(backend, &name), create_database(backend, &name)] {
                    server.execute_unprepared(&sql).await.unwrap();
                }
                server.close().await.unwrap();
                with_database(&backend.server_url(), &name)
            }
        };
        let db = connect(&url, 10).await;
        Self { backend, url, db, name }
    }

    /// A database with the outbox's tables and the sample entities.
    pub async fn ready(backend: Backend, test: &str) -> Self {
        let database = Self::empty(backend, test).await;
        migrate(&database.db, TableNames::new()).await.unwrap();
        crate::entities::create_tables(&database.db).await.unwrap();
        database
    }

    /// Another pool, as another process would have.
    pub async fn connect(&self) -> DatabaseConnection {
        connect(&self.url, 10).await
    }

    /// Counts what a query finds.
    pub async fn count(&self, from: &str) -> i64 {
        count(&self.db, from).await.unwrap()
    }

    /// The test succeeded: nothing is left behind.
    pub async fn drop(self) {
        let Self { backend, db, name, .. } = self;
        db.close().await.unwrap();
        if backend == Backend::Sqlite {
            remove_sqlite(&sqlite_path(&name));
        } else {
            let server = connect(&backend.server_url(), 1).await;
            server.execute_unprepared(&drop_database(backend, &name)).await.unwrap();
            server.close().await.unwrap();
        }
    }
}

/// Counts what `FROM …` finds.
///
/// # Errors
///
/// The database's error.
pub async fn count(db: &impl ConnectionTrait, from: &str) -> Result<i64, DbErr> {
    let sql = format!("SELECT COUNT(*) AS n FROM {from}");
    let backend = db.get_database_backend();
    let row = db.query_one_raw(sea_orm::Statement::from_string(backend, sql)).await?;
    row.map_or(Ok(0), |row| row.try_get("", "n"))
}

/// Connects with a pool of up to so many connections.
///
/// # Panics
///
/// When the database cannot be reached.
pub async fn connect(url: &str, connections: u32) -> DatabaseConnection {
    let mut options = ConnectOptions::new(url);
    options.max_connections(connections).acquire_timeout(Duration::from_secs(30)).sqlx_logging(false);
    let db =
        Database::connect(options).await.unwrap_or_else(|error| panic!("cannot connect to {url}: {error}"));
    if db.get_database_backend() == DbBackend::Sqlite {
        db.execute_unprepared("PRAGMA journal_mode = WAL").await.unwrap();
    }
    db
}

/// A name that every server takes: the end of the test's path and a hash of the whole and of this checkout, so that two
/// checkouts can be tested on one server at once.
fn name_of(test: &str) -> String {
    let hash = concat!(env!("CARGO_MANIFEST_DIR"), " ")
        .bytes()
        .chain(test.bytes())
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    let readable: String = test.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let tail = &readable[readable.len().saturating_sub(30)..];
    format!("obx_{tail}_{:08x}", hash >> 32).to_lowercase()
}

fn with_database(server: &str, name: &str) -> String {
    let (base, _) = server.rsplit_once('/').expect("a database URL ends in /database");
    format!("{base}/{name}")
}

fn drop_database(backend: Backend, name: &str) -> String {
    match backend {
        Backend::Postgres => format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"),
        _ => format!("DROP DATABASE IF EXISTS {name}"),
    }
}

fn create_database(backend: Backend, name: &str) -> String {
    match backend {
        // The default of many servers, to show that the product does not depend on it.
        Backend::MySql => format!("CREATE DATABASE {name} CHARACTER SET latin1"),
        _ => format!("CREATE DATABASE {name}"),
    }
}

fn sqlite_path(name: &str) -> PathBuf {
    env::temp_dir().join(format!("{name}.sqlite"))
}

fn remove_sqlite(path: &std::path::Path) {
    for suffix in ["", "-wal", "-shm"] {
        let file = PathBuf::from(format!("{}{suffix}", path.display()));
        if file.exists() {
            std::fs::remove_file(&file).unwrap();
        }
    }
}

/// Begins a transaction that may read before it writes, which SQLite refuses otherwise.
///
/// # Panics
///
/// When the database fails.
pub async fn begin_immediate(db: &DatabaseConnection) -> DatabaseTransaction {
    let sqlite_transaction_mode = Some(sea_orm::SqliteTransactionMode::Immediate);
    db.begin_with_options(TransactionOptions { sqlite_transaction_mode, ..Default::default() }).await.unwrap()
}
