//! Where a request stands in a trace that spans many processes, as the client tells it (W3C Trace Context).

/// The trace that a request belongs to, and the client's step in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    trace: u128,
    parent: u64,
    flags: u8,
}

impl TraceContext {
    /// Reads a `traceparent`; nothing where it does not follow the standard, since a wrong trace is worse than none.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let hex = |text: &str, digits: usize| {
            text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let well_formed = hex(version, 2) && hex(trace, 32) && hex(parent, 16) && hex(flags, 2);
        // Later versions may add parts, the first has just these; ff is no version.
        let known = version != "ff" && (version != "00" || parts.next().is_none());
        if !well_formed || !known {
            return None;
        }
        let context = Self {
            trace: u128::from_str_radix(trace, 16).ok()?,
            parent: u64::from_str_radix(parent, 16).ok()?,
            flags: u8::from_str_radix(flags, 16).ok()?,
        };
        (context.trace != 0 && context.parent != 0).then_some(context)
    }

    /// The id of the whole trace.
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace)
    }

    /// The id of the client's step.
    pub fn parent_id(&self) -> String {
        format!("{:016x}", self.parent)
    }

    /// Whether the client records the trace.
    pub fn is_sampled(&self) -> bool {
        self.flags & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_is_followed_to_the_letter() {
        let (trace, parent) = ("0af7651916cd43dd8448eb211c80319c", "00f067aa0ba902b7");
        let context = TraceContext::parse(&format!("00-{trace}-{parent}-01")).unwrap();
        assert_eq!((context.trace_id(), context.parent_id()), (trace.into(), parent.into()));
        assert!(context.is_sampled());
        assert!(TraceContext::parse(&format!("cc-{trace}-{parent}-00-later")).is_some());
        for bad in [
            String::new(),
            format!("00-{trace}-{parent}"),
            format!("00-{trace}-{parent}-01-more"),
            format!("ff-{trace}-{parent}-01"),
            format!("00-{}-{parent}-01", trace.to_uppercase()),
            format!("00-{}-{parent}-01", "0".repeat(32)),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{trace}-{parent}-0g"),
        ] {
            assert_eq!(TraceContext::parse(&bad), None, "{bad}");
        }
    }
}
