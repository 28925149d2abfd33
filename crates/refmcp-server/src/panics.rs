//! A panic in a handler ends its call and nothing else.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A future that ends with `None` when the one inside panics.
pub(crate) struct CatchPanic<F>(pub(crate) F);

impl<F: Future + Unpin> Future for CatchPanic<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Whatever the handler shared with others has to cope with a panic anyway; the future itself is not used again.
        match catch_unwind(AssertUnwindSafe(|| Pin::new(&mut self.0).poll(context))) {
            Ok(poll) => poll.map(Some),
            Err(_) => Poll::Ready(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_nothing() {
        assert_eq!(CatchPanic(Box::pin(async { 1 })).await, Some(1));
        let panics = async {
            if std::hint::black_box(true) {
                panic!("on purpose");
            }
        };
        assert_eq!(CatchPanic(Box::pin(panics)).await, None);
    }
}
