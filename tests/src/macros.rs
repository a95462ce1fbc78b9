//! One test → one test for each database.

/// For `async fn name(database: &TestDatabase)`: runs it on SQLite, PostgreSQL and MySQL/MariaDB.
#[macro_export]
macro_rules! for_each_database {
    ($($name:ident),+ $(,)?) => { $(
        mod $name {
            $crate::for_each_database!(@one $name, sqlite, Sqlite);
            $crate::for_each_database!(@one $name, postgres, Postgres);
            $crate::for_each_database!(@one $name, mysql, MySql);
        }
    )+ };
    (@one $name:ident, $module:ident, $backend:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $module() {
            let path = concat!(module_path!(), "::", stringify!($module));
            let database = $crate::database::TestDatabase::ready($crate::database::Backend::$backend, path).await;
            super::$name(&database).await;
            database.drop().await;
        }
    };
}

/// For `async fn name(subject: impl Subject)` of the conformance suite: runs it on all four stores.
#[macro_export]
macro_rules! for_each_store {
    ($($module:ident :: $name:ident),+ $(,)?) => {
        /// All of them one after the other in one database, which is emptied before each.
        pub(crate) async fn all(subject: &$crate::subject::Sql, empty: impl AsyncFn()) {
            $(
                empty().await;
                Box::pin($crate::conformance::$module::$name(subject)).await;
            )+
        }

        $(
        mod $name {
            $crate::for_each_store!(@sql $module, $name, sqlite, Sqlite);
            $crate::for_each_store!(@sql $module, $name, postgres, Postgres);
            $crate::for_each_store!(@sql $module, $name, mysql, MySql);

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn memory() {
                $crate::conformance::$module::$name(&$crate::subject::Memory::default()).await;
            }
        }
    )+ };
    (@sql $suite:ident, $name:ident, $module:ident, $backend:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $module() {
            let path = concat!(module_path!(), "::", stringify!($module));
            let database = $crate::database::TestDatabase::ready($crate::database::Backend::$backend, path).await;
            $crate::conformance::$suite::$name(&$crate::subject::Sql::new(&database)).await;
            database.drop().await;
        }
    };
}

/// As [`for_each_database`], on databases without any table.
#[macro_export]
macro_rules! for_each_empty_database {
    ($($name:ident),+ $(,)?) => { $(
        mod $name {
            $crate::for_each_empty_database!(@one $name, sqlite, Sqlite);
            $crate::for_each_empty_database!(@one $name, postgres, Postgres);
            $crate::for_each_empty_database!(@one $name, mysql, MySql);
        }
    )+ };
    (@one $name:ident, $module:ident, $backend:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $module() {
            let path = concat!(module_path!(), "::", stringify!($module));
            let database = $crate::database::TestDatabase::empty($crate::database::Backend::$backend, path).await;
            super::$name(&database).await;
            database.drop().await;
        }
    };
}
