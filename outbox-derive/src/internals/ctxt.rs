//! Collects mistakes, so that all of them are reported at once.

use std::cell::RefCell;
use std::fmt::Display;
use std::thread;

use proc_macro2::Span;
use quote::ToTokens;
use syn::Error;

/// The errors found so far. Forgetting to [finish](Ctxt::finish) would swallow them, so that panics.
pub(crate) struct Ctxt {
    /// `None` once finished.
    errors: RefCell<Option<Vec<Error>>>,
}

impl Ctxt {
    pub(crate) fn new() -> Self {
        Self { errors: RefCell::new(Some(Vec::new())) }
    }

    /// Records a mistake that `tokens` shows.
    pub(crate) fn error(&self, tokens: impl ToTokens, message: impl Display) {
        self.push(Error::new_spanned(tokens, message));
    }

    /// Records a mistake at a place of which no token is at hand.
    pub(crate) fn error_at(&self, span: Span, message: impl Display) {
        self.push(Error::new(span, message));
    }

    /// Records what a parser of syn's said.
    pub(crate) fn push(&self, error: Error) {
        self.errors.borrow_mut().as_mut().expect("the context is still open").push(error);
    }

    /// Hands out the checked value; or every error combined, with what could be checked all the same.
    ///
    /// # Panics
    ///
    /// When there is neither a value nor an error: a check gave up without saying why.
    pub(crate) fn finish<T>(self, checked: Option<T>) -> Result<T, (Error, Option<T>)> {
        let errors = self.errors.borrow_mut().take().expect("the context is finished only once");
        let combined = errors.into_iter().reduce(|mut all, next| {
            all.combine(next);
            all
        });
        match combined {
            Some(errors) => Err((errors, checked)),
            None => Ok(checked.expect("a check that gives up reports why")),
        }
    }
}

impl Drop for Ctxt {
    fn drop(&mut self) {
        let looked_at = self.errors.borrow().is_none();
        assert!(looked_at || thread::panicking(), "a context was dropped without looking at its errors");
    }
}

#[cfg(test)]
mod tests {
    use super::Ctxt;
    use proc_macro2::Span;

    #[test]
    fn all_errors_come_out_in_order_with_what_was_checked() {
        let cx = Ctxt::new();
        cx.error_at(Span::call_site(), "first");
        cx.error_at(Span::call_site(), "second");
        let (errors, checked) = cx.finish(Some(1)).unwrap_err();
        let messages: Vec<_> = errors.into_iter().map(|error| error.to_string()).collect();
        assert_eq!((messages, checked), (vec!["first".to_owned(), "second".to_owned()], Some(1)));
    }

    #[test]
    #[should_panic(expected = "without looking at its errors")]
    fn errors_cannot_be_forgotten() {
        Ctxt::new().error_at(Span::call_site(), "forgotten");
    }
}
