//! A small service on axum: orders are placed over HTTP, and a relay in the same process confirms them.
//!
//! ```text
//! cargo run --example axum_service -p outbox-examples
//! curl -i 127.0.0.1:3000/orders -H 'content-type: application/json' -d '{"item": "book"}'
//! curl -i 127.0.0.1:3000/orders/1
//! ```
//!
//! `DATABASE_URL` names a database that stays (`postgres://…`, `mysql://…`, `sqlite://orders.db?mode=rwc`), `ADDRESS`
//! another place to listen at. Any number of these processes may share a server's database.

#![allow(unreachable_pub, reason = "SeaORM's entities are public by convention")]

use axum::{Json, Router, extract, extract::rejection, http::StatusCode, response::IntoResponse, routing};
use outbox_core::{HandlerError, OutboxEvent, Relay, State, handler};
use outbox_seaorm::{Aggregate, EventBuffer, SeaOrmStore, TableNames, migrate, migration::exclusively};
use schemars::JsonSchema;
use sea_orm::{ConnectOptions, Database, Schema, Set, prelude::*};
use serde::{Deserialize, Serialize};
use std::{env, error::Error, time::Duration};
use tokio::{net::TcpListener, sync::oneshot, time::timeout};

type Failure = Box<dyn Error + Send + Sync>;

mod orders {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel, serde::Serialize)]
    #[sea_orm(table_name = "orders")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: i32,
        pub item: String,
        pub status: String,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

#[derive(Debug, Serialize, Deserialize, JsonSchema, OutboxEvent)]
#[outbox(name = "shop.order-placed", version = 1)]
struct OrderPlaced {
    order_id: i32,
}

#[derive(Debug, Aggregate)]
#[aggregate(name = "order")]
struct Order {
    #[aggregate(root)]
    root: orders::ActiveModel,
    #[aggregate(events)]
    events: EventBuffer<orders::Model>,
}

impl Order {
    fn place(item: String) -> Self {
        let status = Set("placed".to_owned());
        let mut order = Self::new(orders::ActiveModel { item: Set(item), status, ..Default::default() });
        order.raise_with(|saved| OrderPlaced { order_id: saved.id });
        order
    }
}

/// A real service asks somebody else here: a warehouse, a payment. A message may come again, and the second write
/// changes nothing.
#[handler(id = "shop.confirm-order")]
async fn confirm(event: OrderPlaced, State(db): State<DbConn>) -> Result<(), HandlerError> {
    let order = orders::Entity::update_many().filter(orders::Column::Id.eq(event.order_id));
    let placed = order.filter(orders::Column::Status.eq("placed"));
    placed.col_expr(orders::Column::Status, Expr::value("confirmed")).exec(&db).await?;
    Ok(())
}

#[derive(Deserialize)]
struct NewOrder {
    item: String,
}

async fn place(
    extract::State(db): extract::State<DbConn>,
    body: Result<Json<NewOrder>, rejection::JsonRejection>,
) -> Result<impl IntoResponse, ApiError> {
    let Json(NewOrder { item }) = body.map_err(|e| ApiError(e.status(), "send JSON with a text `item`"))?;
    if item.is_empty() || item.chars().count() > 200 || item.contains('\0') {
        return Err(ApiError(StatusCode::UNPROCESSABLE_ENTITY, "`item` has 1 to 200 characters, no NUL"));
    }
    let mut order = Order::place(item);
    order.save(&db).await?;
    let id = *order.id.as_ref();
    let place = [("location", format!("/orders/{id}"))];
    Ok((StatusCode::CREATED, place, Json(serde_json::json!({ "id": id }))))
}

async fn show(
    extract::State(db): extract::State<DbConn>,
    id: Result<extract::Path<i32>, rejection::PathRejection>,
) -> Result<Json<orders::Model>, ApiError> {
    let missing = ApiError(StatusCode::NOT_FOUND, "there is no such order");
    let Ok(extract::Path(id)) = id else { return Err(missing) };
    orders::Entity::find_by_id(id).one(&db).await?.map(Json).ok_or(missing)
}

/// What a client is told.
struct ApiError(StatusCode, &'static str);

/// Ours: the reason goes to the log and not to the client, because error texts name tables and values.
impl<E: Error> From<E> for ApiError {
    fn from(error: E) -> Self {
        tracing::error!(%error, "a request failed");
        Self(StatusCode::INTERNAL_SERVER_ERROR, "the service failed; try again later")
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> axum::response::Response {
        (self.0, Json(serde_json::json!({ "error": self.1 }))).into_response()
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    tracing_subscriber::fmt().init();
    let mut options = ConnectOptions::new(env::var("DATABASE_URL").unwrap_or("sqlite::memory:".into()));
    // A database in memory lives in its one connection, so that is never replaced.
    options.sqlx_logging(false).max_lifetime(None).idle_timeout(None);
    let db = Database::connect(options).await?;
    let listener = TcpListener::bind(env::var("ADDRESS").unwrap_or("127.0.0.1:3000".into())).await?;
    tracing::info!(address = %listener.local_addr()?, "listening");
    serve(listener, db, stop_signal()).await
}

/// Serves until `shutdown`: then no new requests, and when the last one is answered the relay stops, too.
async fn serve(listener: TcpListener, db: DbConn, shutdown: impl Future<Output = ()>) -> Result<(), Failure> {
    let mut table = Schema::new(db.get_database_backend()).create_table_from_entity(orders::Entity);
    table.if_not_exists();
    // One process at a time. A service with a `Migrator` runs it here, with `outbox_seaorm::migrations()` in its list.
    exclusively(&db, async |tx| tx.execute(&table).await.map(drop)).await?;
    migrate(&db, TableNames::new()).await?;
    let handlers = outbox_core::Router::builder().state(db.clone()).discover();
    let relay = Relay::new(SeaOrmStore::new(db.clone()), handlers.expect(["shop.confirm-order"]).build()?);
    let (stop_relay, stopped) = oneshot::channel::<()>();
    let mut relay = tokio::spawn(async move { relay.run(async { drop(stopped.await) }).await });

    let routes = Router::new().route("/orders", routing::post(place));
    let routes = routes.route("/orders/{id}", routing::get(show)).with_state(db.clone());
    let (stop_server, stopped) = oneshot::channel::<()>();
    let server = axum::serve(listener, routes).with_graceful_shutdown(async { drop(stopped.await) });
    let server = tokio::spawn(server.into_future());
    tokio::select! {
        () = shutdown => {}
        // It ends by itself only when it cannot start; orders without a relay would wait for ever.
        ended = &mut relay => return Ok(ended??),
    }
    drop(stop_server);
    if timeout(Duration::from_secs(10), server).await.is_err() {
        tracing::warn!("requests that did not end in time are cut off");
    }
    drop(stop_relay);
    relay.await??;
    Ok(db.close().await?)
}

async fn stop_signal() {
    #[cfg(unix)]
    let terminated = async {
        let signals = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
        signals.expect("SIGTERM can be listened to").recv().await
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending::<()>();
    tokio::select! { _ = tokio::signal::ctrl_c() => {}, _ = terminated => {} }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outbox_tests::{database::TestDatabase, for_each_empty_database, wait::until};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::{net::TcpStream, task::JoinHandle};

    for_each_empty_database! {
        an_order_is_confirmed_by_its_event,
        a_request_that_fails_leaves_neither_order_nor_event,
        a_stopping_service_answers_what_it_was_asked_and_ends,
    }

    const BOOK: &str = r#"{"item":"book"}"#;

    /// Where it listens, how it is stopped, how it ended.
    struct Service(std::net::SocketAddr, oneshot::Sender<()>, JoinHandle<Result<(), Failure>>);

    impl Service {
        async fn start(database: &TestDatabase) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let (address, db) = (listener.local_addr().unwrap(), database.connect().await);
            let (stop, stopped) = oneshot::channel::<()>();
            let shutdown = async { drop(stopped.await) };
            Self(address, stop, tokio::spawn(serve(listener, db, shutdown)))
        }

        /// Sends the head of a request: the server says that it waits for the body.
        async fn begin(&self, request: &str, length: usize) -> TcpStream {
            let mut stream = TcpStream::connect(self.0).await.unwrap();
            let head = format!("{request} HTTP/1.1\r\nhost: shop\r\nconnection: close\r\n");
            let head = format!(
                "{head}expect: 100-continue\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            stream
        }

        async fn ask(&self, request: &str, body: &str) -> (u16, String) {
            end(self.begin(request, body.len()).await, body).await
        }
    }

    async fn end(mut stream: TcpStream, body: &str) -> (u16, String) {
        let mut text = String::new();
        stream.write_all(body.as_bytes()).await.unwrap();
        stream.read_to_string(&mut text).await.unwrap();
        let (_, last) = text.rsplit_once("HTTP/1.1 ").unwrap();
        (last[..3].parse().unwrap(), last.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    async fn an_order_is_confirmed_by_its_event(database: &TestDatabase) {
        let service = Service::start(database).await;
        assert_eq!(service.ask("POST /orders", BOOK).await, (201, r#"{"id":1}"#.to_owned()));
        let confirmed = (200, r#"{"id":1,"item":"book","status":"confirmed"}"#.to_owned());
        until("it is confirmed", async || service.ask("GET /orders/1", "").await == confirmed).await;
        let dispatched = "outbox WHERE status = 'dispatched'";
        until("its row is marked", async || database.count(dispatched).await == 1).await;
    }

    async fn a_request_that_fails_leaves_neither_order_nor_event(database: &TestDatabase) {
        let service = Service::start(database).await;
        for (body, status) in [("{", 400), ("{}", 422), (r#"{"item":""}"#, 422)] {
            assert_eq!(service.ask("POST /orders", body).await.0, status, "{body}");
        }
        assert_eq!(service.ask("GET /orders/one", "").await.0, 404);
        assert_eq!((database.count("orders").await, database.count("outbox").await), (0, 0));
        database.db.execute_unprepared("DROP TABLE outbox").await.unwrap();
        let (status, text) = service.ask("POST /orders", BOOK).await;
        assert_eq!((status, text.contains("outbox"), database.count("orders").await), (500, false, 0));
    }

    async fn a_stopping_service_answers_what_it_was_asked_and_ends(database: &TestDatabase) {
        let service = Service::start(database).await;
        let mut request = service.begin("POST /orders", BOOK.len()).await;
        // Its handler waits for the body by now.
        request.read_exact(&mut [0; 12]).await.unwrap();
        drop(service.1);
        assert_eq!(end(request, BOOK).await.0, 201);
        service.2.await.unwrap().unwrap();
        assert!(TcpStream::connect(service.0).await.is_err(), "nobody listens any more");
        assert_eq!(database.count("outbox WHERE status = 'claimed'").await, 0);
    }
}
