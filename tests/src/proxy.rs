//! Connections that break: at the worst moment (after the server has committed, before the client knows), or all at once.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// Stands between a pool and its server.
#[derive(Debug)]
pub struct Proxy {
    /// The URL that leads through the proxy.
    pub url: String,
    armed: Arc<AtomicBool>,
    is_cut: watch::Sender<bool>,
}

impl Proxy {
    /// Puts a proxy before the server of a URL.
    ///
    /// # Panics
    ///
    /// When the URL names no host and port.
    pub async fn before(url: &str) -> Self {
        let (scheme, rest) = url.split_once("://").unwrap();
        let (login, place) = rest.split_once('@').unwrap();
        let (server, database) = place.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{scheme}://{login}@{}/{database}", listener.local_addr().unwrap());
        let armed = Arc::new(AtomicBool::new(false));
        let (is_cut, cut) = watch::channel(false);
        tokio::spawn(accept(listener, server.to_owned(), armed.clone(), cut));
        Self { url, armed, is_cut }
    }

    /// Every connection breaks, and new ones break at once, until it is mended.
    pub fn cut(&self) {
        self.is_cut.send_replace(true);
    }

    /// New connections work again.
    pub fn mend(&self) {
        self.is_cut.send_replace(false);
    }

    /// The next COMMIT is executed, and its answer is lost with the connection.
    pub fn lose_the_next_commits_answer(&self) {
        self.armed.store(true, SeqCst);
    }
}

async fn accept(listener: TcpListener, server: String, armed: Arc<AtomicBool>, cut: watch::Receiver<bool>) {
    while let Ok((client, _)) = listener.accept().await {
        if *cut.borrow() {
            continue;
        }
        let server = TcpStream::connect(&server).await.unwrap();
        let (armed, mut cut) = (armed.clone(), cut.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = forward(client, server, armed) => {}
                _ = cut.wait_for(|cut| *cut) => {}
            }
        });
    }
}

/// Not the word COMMITTED, of a level of isolation.
fn has_commit(bytes: &[u8]) -> bool {
    let starts = |i: usize, word: &[u8]| bytes[i..].starts_with(word);
    (0..bytes.len()).any(|i| starts(i, b"COMMIT") && !starts(i, b"COMMITTED"))
}

async fn forward(mut client: TcpStream, mut server: TcpStream, armed: Arc<AtomicBool>) {
    let (mut up, mut down) = ([0; 16 * 1024], [0; 16 * 1024]);
    loop {
        tokio::select! {
            read = client.read(&mut up) => {
                let Ok(bytes @ 1..) = read else { return };
                if server.write_all(&up[..bytes]).await.is_err() {
                    return;
                }
                let is_commit = has_commit(&up[..bytes]);
                if is_commit && armed.swap(false, SeqCst) {
                    // Once the server answers, it has committed.
                    drop(server.read(&mut down).await);
                    return;
                }
            }
            read = server.read(&mut down) => {
                let Ok(bytes @ 1..) = read else { return };
                if client.write_all(&down[..bytes]).await.is_err() {
                    return;
                }
            }
        }
    }
}
