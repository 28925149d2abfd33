//! TypeMap by their type, for whoever wants to keep something with a server or a session.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// One value of each type.
#[derive(Default)]
pub(crate) struct TypeMap(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl TypeMap {
    /// The value of this type, made when it is first asked for.
    pub(crate) fn get<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut values = self.0.lock();
        let value = values.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default()));
        // The key is the type, so the other arm is never taken.
        value.clone().downcast().unwrap_or_default()
    }
}
