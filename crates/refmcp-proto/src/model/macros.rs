//! Macros that keep the model short: JSON objects, chainable setters, enumerations open to unknown names, unions.

/// Declares structs that are JSON objects on the wire, with camelCase names. All members are public. What each kind of
/// member is written as is said here once:
///
/// - `name: T` is required.
/// - `name?: T` is an `Option<T>` that is left out when `None`, and has a chainable setter.
/// - `default?: T` has the setter `with_default`: `default` would clash with the trait.
/// - `_meta: T` is the optional member `meta`, `_meta` on the wire.
/// - `..result` stands for `resultType` and `_meta` of a result, `..cacheable_result` for `ttlMs` and `cacheScope` besides,
///   `..task` for the members of a task.
/// - `fn new,` at the end writes a constructor that takes the required members in order: lists as they are, so that they can
///   be collected, and all else as what converts into it.
///
/// A struct has a `Default`, unless `without Default` stands behind it. Every object ends in `extra`, which keeps unknown members over a round trip.
macro_rules! json_object {
    () => {};
    ($(#[$outer:meta])* pub struct $type:ident { $($members:tt)* } without Default $($rest:tt)*) => {
        json_object! { @members $type [$(#[$outer])*] [] [] [] $($members)* }
        json_object! { $($rest)* }
    };
    ($(#[$outer:meta])* pub struct $type:ident { $($members:tt)* } $($rest:tt)*) => {
        json_object! { @members $type [#[derive(Default)] $(#[$outer])*] [] [] [] $($members)* }
        json_object! { $($rest)* }
    };
    (@members $type:ident $outer:tt $fields:tt $required:tt $optional:tt ..cacheable_result $($rest:tt)*) => {
        json_object! { @members $type $outer $fields $required $optional
            /// How many milliseconds the result stays fresh.
            ttl_ms?: u64,
            /// Which clients may share the cached result.
            cache_scope?: $crate::model::CacheScope,
            ..result $($rest)*
        }
    };
    (@members $type:ident $outer:tt $fields:tt $required:tt $optional:tt ..task, $($rest:tt)*) => {
        json_object! { @members $type $outer $fields $required $optional
            /// Its id, which cannot be guessed.
            task_id: String,
            /// How far it has come.
            status: $crate::model::TaskStatus,
            /// What it is doing, or why it ended, for people.
            status_message?: String,
            /// When it was created, as ISO 8601.
            created_at: String,
            /// When it last changed, as ISO 8601.
            last_updated_at: String,
            /// For how many milliseconds it is kept from its creation; `None` is for ever.
            #[serde(alias = "ttl")]
            ttl_ms: Option<u64>,
            /// How many milliseconds to wait between two requests for its status.
            #[serde(alias = "pollInterval")]
            poll_interval_ms?: u64,
            /// What it needs from the client, while it requires input.
            input_requests?: $crate::model::InputRequests,
            /// The result of the request, once it is completed.
            result?: $crate::model::JsonObject,
            /// Why there is no result, once it has failed.
            error?: $crate::jsonrpc::RpcError,
            $($rest)*
        }
    };
    (@members $type:ident $outer:tt $fields:tt $required:tt $optional:tt ..result $(, $($rest:tt)*)?) => {
        json_object! { @members $type $outer $fields $required $optional
            /// Whether the result is complete or requires input.
            result_type?: $crate::model::ResultType,
            _meta: $crate::model::ResultMeta,
            $($($rest)*)?
        }
    };
    (@members $type:ident $outer:tt $fields:tt $required:tt $optional:tt _meta: $ty:ty, $($rest:tt)*) => {
        json_object! { @members $type $outer $fields $required $optional
            /// Metadata, `_meta` on the wire.
            #[serde(rename = "_meta")]
            meta?: $ty,
            $($rest)*
        }
    };
    (@members $type:ident $outer:tt $fields:tt $required:tt $optional:tt
        $(#[$attribute:meta])* default?: $ty:ty, $($rest:tt)*
    ) => {
        json_object! { @optional $type $outer $fields $required $optional
            [$(#[$attribute])*] with_default default: $ty, $($rest)*
        }
    };
    (@members $type:ident $outer:tt $fields:tt $required:tt $optional:tt
        $(#[$attribute:meta])* $name:ident?: $ty:ty, $($rest:tt)*
    ) => {
        json_object! { @optional $type $outer $fields $required $optional
            [$(#[$attribute])*] $name $name: $ty, $($rest)*
        }
    };
    (@optional $type:ident $outer:tt [$($fields:tt)*] $required:tt [$($optional:tt)*]
        [$($attribute:tt)*] $setter:ident $name:ident: $ty:ty, $($rest:tt)*
    ) => {
        json_object! { @members $type $outer
            [
                $($fields)*
                $($attribute)*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $name: Option<$ty>,
            ]
            $required
            [$($optional)* #[doc = concat!("Sets `", stringify!($name), "`.")] $setter $name: $ty,]
            $($rest)*
        }
    };
    (@members $type:ident $outer:tt [$($fields:tt)*] [$($required:tt)*] $optional:tt
        $(#[$attribute:meta])* $name:ident: Vec<$item:ty>, $($rest:tt)*
    ) => {
        json_object! { @members $type $outer
            [$($fields)* $(#[$attribute])* pub $name: Vec<$item>,]
            [$($required)* $name [Vec<$item>],] $optional $($rest)*
        }
    };
    (@members $type:ident $outer:tt [$($fields:tt)*] [$($required:tt)*] $optional:tt
        $(#[$attribute:meta])* $name:ident: $ty:ty, $($rest:tt)*
    ) => {
        json_object! { @members $type $outer
            [$($fields)* $(#[$attribute])* pub $name: $ty,]
            [$($required)* $name [impl Into<$ty>],] $optional $($rest)*
        }
    };
    (@members $type:ident $outer:tt $fields:tt [$($required:ident [$($parameter:tt)*],)*]
        [$($(#[$doc:meta])* $setter:ident $optional:ident: $optional_ty:ty,)*]
        $(#[$attribute:meta])* fn new,
    ) => {
        json_object! { @members $type $outer $fields []
            [$($(#[$doc])* $setter $optional: $optional_ty,)*]
        }

        impl $type {
            $(#[$attribute])*
            pub fn new($($required: $($parameter)*),*) -> Self {
                let extra = $crate::model::Extra::new();
                Self { $($required: $required.into(),)* $($optional: None,)* extra }
            }
        }
    };
    (@members $type:ident [$($outer:tt)*] [$($fields:tt)*] $required:tt [$($optional:tt)*]) => {
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        $($outer)*
        pub struct $type {
            $($fields)*
            /// Members this model does not name.
            #[serde(flatten)]
            pub extra: $crate::model::Extra,
        }

        impl $type {
            setters! { $($optional)* }
        }
    };
}

/// Writes chainable setters for optional members; each takes what converts into the member's type. `setter member: Type`
/// names a setter that is called otherwise than its member.
macro_rules! setters {
    ($($(#[$doc:meta])* $setter:ident $name:ident: $ty:ty),* $(,)?) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub fn $setter(mut self, $name: impl Into<$ty>) -> Self {
                self.$name = Some($name.into());
                self
            }
        )*
    };
    ($($(#[$doc:meta])* $name:ident: $ty:ty),* $(,)?) => {
        setters! { $($(#[$doc])* $name $name: $ty),* }
    };
}

/// Writes an enumeration of names that keeps a name it does not know as `Other`, so that a peer which is
/// ahead of this model can still be read.
macro_rules! open_enum {
    ($(#[$outer:meta])* $vis:vis enum $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)? }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        $vis enum $type {
            $($(#[$doc])* $variant,)*
            /// A name this model does not know, as it came.
            Other(String),
        }

        impl $type {
            /// The name on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Other(name) => name,
                }
            }
        }

        impl From<String> for $type {
            fn from(name: String) -> Self {
                match name.as_str() {
                    $($name => Self::$variant,)*
                    _ => Self::Other(name),
                }
            }
        }

        impl From<&str> for $type {
            fn from(name: &str) -> Self {
                Self::from(name.to_owned())
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <String as serde::Deserialize>::deserialize(deserializer).map(Self::from)
            }
        }
    };
}

/// Writes `From` for the variants of a union: `Type => Variant`, in a `Box` where the variant has one.
macro_rules! from_variants {
    ($union:ident { $($type:ty => $variant:ident),* $(,)? }) => {
        $(
            impl From<$type> for $union {
                fn from(value: $type) -> Self {
                    Self::$variant(value.into())
                }
            }
        )*
    };
}
