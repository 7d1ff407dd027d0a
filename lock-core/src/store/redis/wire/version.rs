//! The version of a server.

use redis::{Value, cmd};

use super::connection::Connection;
use super::reply::field;
use super::send_error::{SendError, failure};
use crate::store::Failure;

/// Reads `INFO`; `None` for a user that may not.
pub(in crate::store::redis) async fn ask_info(
    connection: &Connection,
) -> Result<Option<Value>, Failure> {
    match connection.send(&cmd("INFO").arg("server").take()).await {
        Ok(info) => Ok(Some(info)),
        Err(SendError::Broken(error)) => Err(failure(error)),
        Err(_) => Ok(None),
    }
}

/// Reads the version from `INFO`. A part that is left out counts as zero.
pub(in crate::store::redis) fn version(info: &Value) -> Option<(u32, u32, u32)> {
    let version = field(info, "redis_version")?;
    let mut numbers = version.split('.').map_while(|number| number.parse().ok());
    Some((
        numbers.next()?,
        numbers.next()?,
        numbers.next().unwrap_or(0),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_info() {
        let info = Value::BulkString(
            b"# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n".to_vec(),
        );
        assert_eq!(version(&info), Some((7, 0, 15)));
        assert_eq!(
            version(&Value::BulkString(b"redis_version:unstable".to_vec())),
            None
        );
    }
}
