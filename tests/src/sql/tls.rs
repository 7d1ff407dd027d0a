//! A PostgreSQL that speaks TLS.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use super::{SqlServer, give_away};
use crate::{Authority, Certificate};

impl SqlServer {
    /// Starts a PostgreSQL that shows this certificate, and trusts clients whose certificate the authority has signed.
    ///
    /// `admits` has the lines of its `pg_hba.conf` about users other than its owner, whom it admits without TLS too.
    ///
    /// # Panics
    ///
    /// As [`postgres`](Self::postgres).
    #[track_caller]
    pub fn postgres_over_tls(
        authority: &Authority,
        certificate: &Certificate,
        admits: &str,
    ) -> SqlServer {
        let (folder, program) = SqlServer::empty_postgres();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("a folder to write in");
            // It refuses a key that others may read.
            fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("the own file");
            give_away(&path);
            path.display().to_string()
        };
        let root = String::from_utf8(authority.pem()).expect("PEM");
        let hba = format!("{admits}\nhost all locks all trust\n");
        let settings = [
            "fsync=off".to_owned(),
            "ssl=on".to_owned(),
            format!("ssl_ca_file={}", file("root.pem", &root)),
            format!("ssl_cert_file={}", file("server.pem", &certificate.pem)),
            format!("ssl_key_file={}", file("server.key", &certificate.key)),
            format!("hba_file={}", file("hba.conf", &hba)),
        ];
        let settings = settings.each_ref().map(String::as_str);
        SqlServer::postgres_in(folder, program, &settings)
    }
}
