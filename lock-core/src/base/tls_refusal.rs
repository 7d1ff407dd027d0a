//! Errors of a TLS handshake that no repetition mends, in our own words.

use rustls::{AlertDescription, CertificateError, Error};

/// Says why the server and this client will never connect as they are configured. `None` for any other error, such as an
/// alert of a server that stops or data that is garbled: a later connection may succeed.
pub(crate) fn of(error: &Error) -> Option<&'static str> {
    Some(match error {
        Error::InvalidCertificate(why) => certificate(why),
        Error::NoCertificatesPresented => "the server shows no certificate",
        Error::AlertReceived(alert) => return alert_received(*alert),
        Error::PeerIncompatible(_) => {
            "the server speaks no version of TLS that is safe; let it speak 1.2 or 1.3"
        }
        _ => return None,
    })
}

fn certificate(why: &CertificateError) -> &'static str {
    match why {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "the server's certificate is signed by nobody whom this machine trusts; give the authority that signed it to \
             `ManagerBuilder::tls_certificates`, or add it to the system's, or name its file in the environment variable \
             SSL_CERT_FILE"
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate has expired or is not valid yet; renew it, if the clock of this machine is right"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the server's certificate is for another name than that of the URL, or that by which the sentinels or nodes \
             call it"
        }
        CertificateError::Revoked => "the server's certificate has been revoked",
        _ => "the server's certificate is not acceptable",
    }
}

/// The message about an alert of the server.
fn alert_received(alert: AlertDescription) -> Option<&'static str> {
    Some(match alert {
        AlertDescription::CertificateRequired | AlertDescription::NoCertificate => {
            "the server asks for a certificate of the client; give one to `ManagerBuilder::tls_certificates`, or let the \
             server ask for none (Redis: `tls-auth-clients no`)"
        }
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::DecryptError
        | AlertDescription::AccessDenied => {
            "the server does not accept the certificate of this client; give one that it trusts to \
             `ManagerBuilder::tls_certificates`"
        }
        AlertDescription::UnrecognisedName => {
            "the server knows no host of the name in the URL; write the name that it has"
        }
        AlertDescription::ProtocolVersion
        | AlertDescription::InsufficientSecurity
        | AlertDescription::HandshakeFailure => {
            "the server and this client have no version or cipher of TLS in common; let the server speak 1.2 or 1.3"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use rustls::InvalidMessage;

    use super::*;

    #[test]
    fn an_alert_about_the_configuration_is_final() {
        for alert in [
            AlertDescription::CertificateRequired,
            AlertDescription::UnknownCA,
            AlertDescription::ProtocolVersion,
            AlertDescription::InsufficientSecurity,
            AlertDescription::UnrecognisedName,
        ] {
            assert!(of(&Error::AlertReceived(alert)).is_some(), "{alert:?}");
        }
        let certificate = Error::InvalidCertificate(CertificateError::Expired);
        assert!(of(&certificate).is_some_and(|why| why.contains("expired")));
    }

    #[test]
    fn an_alert_of_a_server_that_stops_and_garbled_data_are_an_outage() {
        for alert in [
            AlertDescription::InternalError,
            AlertDescription::CloseNotify,
            AlertDescription::UserCanceled,
        ] {
            assert_eq!(of(&Error::AlertReceived(alert)), None);
        }
        assert_eq!(of(&Error::DecryptError), None);
        let garbage = InvalidMessage::InvalidContentType;
        assert_eq!(of(&Error::InvalidMessage(garbage)), None);
    }
}
