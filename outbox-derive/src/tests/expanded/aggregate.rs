#[allow(deprecated)]
const _: () = {
    use ::facade::seaorm::__private as __o;
    #[automatically_derived]
    impl __o::Drop for Order {
        fn drop(&mut self) {}
    }
    #[automatically_derived]
    impl __o::From<orders::ModelEx> for Order {
        fn from(model: orders::ModelEx) -> Self {
            Self::new(__o::IntoActiveModel::into_active_model(model))
        }
    }
    #[automatically_derived]
    impl __o::Deref for Order {
        type Target = orders::ActiveModelEx;
        fn deref(&self) -> &Self::Target {
            &self.order
        }
    }
    #[automatically_derived]
    impl __o::DerefMut for Order {
        fn deref_mut(&mut self) -> &mut Self::Target {
            &mut self.order
        }
    }
    #[automatically_derived]
    impl __o::Aggregate for Order {
        type Model = orders::ModelEx;
        type Root = orders::ActiveModelEx;
        const AGGREGATE_TYPE: &'static str = "order";
        const TABLES: __o::TableNames = crate::TABLES;
        fn parts(aggregate: &Self) -> (&Self::Root, &__o::EventBuffer<Self::Model>) {
            (&aggregate.order, &aggregate.raised)
        }
        fn parts_mut(
            aggregate: &mut Self,
        ) -> (&mut Self::Root, &mut __o::EventBuffer<Self::Model>) {
            (&mut aggregate.order, &mut aggregate.raised)
        }
        async fn write_root<__T: __o::ConnectionTrait + __o::TransactionTrait>(
            root: Self::Root,
            tx: &__T,
            operation: __o::Operation,
        ) -> __o::Result<Self::Model, __o::SaveError> {
            #[allow(unused_imports)]
            use __o::prelude::*;
            let saved: orders::ModelEx = match operation {
                __o::Operation::Insert => root.insert(tx).await?,
                __o::Operation::Update => root.update(tx).await?,
                __o::Operation::Save => root.save(tx).await?.try_into_model()?,
                __o::Operation::Delete => {
                    let gone = root.clone().try_into_model()?;
                    __o::require_deleted::<Self>(&root.delete(tx).await?)?;
                    gone
                }
            };
            __o::Ok(saved)
        }
    }
    #[allow(dead_code)]
    impl Order {
        /// An aggregate over this root that has raised nothing yet; all other fields have their default.
        #[must_use]
        pub(crate) fn new(order: orders::ActiveModelEx) -> Self {
            Self {
                order,
                raised: __o::Default::default(),
                cache: __o::Default::default(),
            }
        }
        /// Raises an event: its identity, time and payload are fixed now, and the next save stores it.
        ///
        /// An event that cannot be stored makes that save fail; `try_raise` says so at once.
        pub(crate) fn raise<E: __o::OutboxEvent>(&mut self, event: E) {
            self.raised.raise(event);
        }
        /// Raises an event and gives its identity.
        ///
        /// # Errors
        ///
        /// When the event cannot be stored; then nothing was raised.
        pub(crate) fn try_raise<E: __o::OutboxEvent>(
            &mut self,
            event: E,
        ) -> __o::Result<__o::MessageId, __o::EventError> {
            self.raised.try_raise(event)
        }
        /// Raises an event that needs what the database generates: the closure is given the saved model, inside the
        /// transaction. Identity and time are fixed now, and the identity is returned. It runs again when a failed
        /// save is tried again.
        pub(crate) fn raise_with<E: __o::OutboxEvent>(
            &mut self,
            event: impl __o::Fn(&orders::ModelEx) -> E + __o::Send + __o::Sync + 'static,
        ) -> __o::MessageId {
            self.raised.raise_with(event)
        }
        /// How many raised events are not stored yet.
        #[must_use]
        pub(crate) fn pending_events(&self) -> usize {
            self.raised.len()
        }
        /// Forgets the raised events that are not stored yet.
        pub(crate) fn discard_events(&mut self) {
            self.raised.discard();
        }
        /// Not to be called, and no call compiles: it stands before the root's own `clone`, which would be found
        /// through `Deref` and leave the raised events behind.
        #[doc(hidden)]
        #[allow(clippy::should_implement_trait, clippy::unused_self)]
        pub(crate) fn clone(&self) -> Self
        where
            for<'__a> Self: __o::CloneableAggregate<'__a>,
        {
            ::core::unreachable!("no aggregate is cloneable")
        }
        /// Inserts the root and stores the raised events with it, in one transaction. Given a transaction, it joins
        /// it through a savepoint.
        ///
        /// # Errors
        ///
        /// When anything could not be written. Then nothing was; root and events are kept, and it can be tried again.
        pub(crate) async fn insert<C: __o::TransactionTrait>(
            &mut self,
            db: &C,
        ) -> __o::Result<(), __o::SaveError> {
            __o::save(self, db, __o::Operation::Insert).await
        }
        /// Updates the root and stores the raised events with it, in one transaction. Given a transaction, it joins
        /// it through a savepoint.
        ///
        /// # Errors
        ///
        /// When anything could not be written. Then nothing was; root and events are kept, and it can be tried again.
        pub(crate) async fn update<C: __o::TransactionTrait>(
            &mut self,
            db: &C,
        ) -> __o::Result<(), __o::SaveError> {
            __o::save(self, db, __o::Operation::Update).await
        }
        /// Inserts a new root, updates a loaded one, and stores the raised events with it, in one transaction. Given a
        /// transaction, it joins it through a savepoint.
        ///
        /// A root is loaded when its whole primary key came from the database; a key that the application generates
        /// makes it no less new.
        ///
        /// # Errors
        ///
        /// When anything could not be written. Then nothing was; root and events are kept, and it can be tried again.
        pub(crate) async fn save<C: __o::TransactionTrait>(
            &mut self,
            db: &C,
        ) -> __o::Result<(), __o::SaveError> {
            __o::save(self, db, __o::Operation::Save).await
        }
        /// Deletes the root and stores the raised events, in one transaction. Given a transaction, it joins it through
        /// a savepoint. The root is kept as it was.
        ///
        /// # Errors
        ///
        /// When the root is not in the database, or anything could not be written. Then nothing was; the events are
        /// kept, and it can be tried again.
        pub(crate) async fn delete<C: __o::TransactionTrait>(
            &mut self,
            db: &C,
        ) -> __o::Result<(), __o::SaveError> {
            __o::save(self, db, __o::Operation::Delete).await
        }
    }
};
