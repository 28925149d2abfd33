//! Two macros that keep the model short: chainable setters and enumerations open to unknown names.

/// Writes chainable setters for optional members; each takes whatever converts into the member's type.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $ty:ty),* $(,)?) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub fn $name(mut self, $name: impl Into<$ty>) -> Self {
                self.$name = Some($name.into());
                self
            }
        )*
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
