//! Methods beyond the protocol.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::{CustomResult, JsonObject};

use super::{PreparedCall, params};
use crate::call::Call;
use crate::error::CallError;

type Work = Pin<Box<dyn Future<Output = Result<JsonObject, CallError>> + Send>>;

/// The function behind a method.
#[derive(Clone)]
pub(crate) struct CustomMethod(Arc<dyn Fn(Call, JsonObject) -> Work + Send + Sync>);

impl CustomMethod {
    pub(crate) fn new<F, Fut>(handler: F) -> Self
    where
        F: Fn(Call, JsonObject) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<JsonObject, CallError>> + Send + 'static,
    {
        Self(Arc::new(move |call, params| Box::pin(handler(call, params))))
    }
}

pub(super) fn run(call: &Call, name: &str) -> Result<PreparedCall, CallError> {
    let method = call.server().custom_method(name).cloned();
    let method = method.ok_or_else(|| RpcError::method_not_found(name))?;
    let mut params: JsonObject = params(call)?;
    params.remove("_meta");
    let call = call.clone();
    Ok(PreparedCall::spawned(async move { Ok(CustomResult::new((method.0)(call, params).await?).into()) }))
}
