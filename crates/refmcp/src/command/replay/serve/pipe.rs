//! A mock over one stream each way.

use std::io;

use refmcp_audit::replay::{MockOutput, MockSession};
use refmcp_client::observer::Observed;
use refmcp_transport::driver::ConnectionEnd;
use refmcp_transport::pipe::{Frame, FrameReader, FrameWriter};

use super::{MAX_MESSAGE, tell_remarks};

/// Answers what is read, until nothing more comes. A mock speaks only when it is spoken to, so nothing has to be read and
/// written at the same time.
pub(super) async fn serve(
    (mut reader, mut writer): (impl FrameReader, impl FrameWriter),
    mut session: MockSession,
    observed: Observed,
) -> io::Result<()> {
    let mut call = 0;
    let mut is_open = true;
    while is_open {
        is_open = reader.fill().await?;
        while let Some(frame) = reader.next_frame() {
            let Frame::Message(bytes) = frame else {
                observed.too_long(MAX_MESSAGE);
                continue;
            };
            observed.received(bytes);
            call += 1;
            let outputs = session.receive(call, &String::from_utf8_lossy(bytes));
            tell_remarks(&outputs);
            for output in outputs {
                if let MockOutput::Message(message) = output {
                    observed.sent(message.text.as_bytes());
                    writer.push(message.text.as_bytes());
                }
            }
            while writer.pending() > 0 {
                writer.flush().await?;
            }
        }
    }
    writer.close(ConnectionEnd::Closed).await;
    observed.closed(&"the client closed it");
    Ok(())
}
