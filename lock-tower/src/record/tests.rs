//! Properties of records: what was encoded is decoded, and no other bytes are a record.

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use sha2::{Digest, Sha256};

use super::{Draft, Fingerprinted, Record, Seal, Sealing, Unreadable};

/// Yields the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> usize {
        (self.next() % bound) as usize
    }

    fn bytes(&mut self, bound: u64) -> Vec<u8> {
        (0..self.below(bound)).map(|_| self.next() as u8).collect()
    }

    fn headers(&mut self) -> HeaderMap {
        const NAMES: [&str; 6] = [
            "content-type",
            "vary",
            "grpc-status",
            "grpc-of-tomorrow",
            "x-named",
            "link",
        ];
        let mut headers = HeaderMap::new();
        for _ in 0..self.below(8) {
            let name = HeaderName::from_static(NAMES[self.below(6)]);
            let value: Vec<u8> = (0..self.below(40))
                .map(|_| 32 + self.below(95) as u8)
                .collect();
            headers.append(name, HeaderValue::from_bytes(&value).unwrap());
        }
        headers
    }

    fn record(&mut self) -> Record {
        let mut digest = [0; 32];
        digest.fill_with(|| self.next() as u8);
        Record {
            request: Fingerprinted {
                digest,
                read: self.next() >> self.below(64),
                ended: self.below(2) == 0,
            },
            status: StatusCode::from_u16(100 + self.below(900) as u16).unwrap(),
            headers: self.headers(),
            body: Bytes::from(self.bytes(300)),
            trailers: (self.below(2) == 0).then(|| self.headers()),
        }
    }
}

const MORE: [HeaderName; 1] = [HeaderName::from_static("x-named")];

fn encoded(record: &Record, sealing: Option<Sealing<'_>>) -> Vec<u8> {
    let draft = Draft {
        request: record.request,
        status: record.status,
        headers: &record.headers,
        body: &record.body,
        trailers: record.trailers.as_ref(),
    };
    draft.encode(&MORE, sealing).unwrap()
}

/// Moves every byte by one, and puts the context in front.
struct Shift;

impl Seal for Shift {
    fn seal(&self, context: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
        let shifted = plain.iter().map(|byte| byte.wrapping_add(1));
        Some(context.iter().copied().chain(shifted).collect())
    }

    fn open(&self, context: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let shifted = sealed.strip_prefix(context)?;
        Some(shifted.iter().map(|byte| byte.wrapping_sub(1)).collect())
    }
}

#[test]
fn every_record_is_decoded_as_it_was_encoded() {
    let mut numbers = Numbers(1);
    let sealing = Sealing {
        seal: &Shift,
        context: b"lockkit:pay:7",
    };
    for _ in 0..2_000 {
        let record = numbers.record();
        for sealing in [None, Some(sealing)] {
            let bytes = encoded(&record, sealing);
            assert_eq!(Record::decode(&bytes, sealing).as_ref(), Ok(&record));
        }
    }
}

#[test]
fn a_record_that_was_cut_lengthened_or_changed_in_one_bit_is_unreadable() {
    let mut numbers = Numbers(2);
    for _ in 0..20 {
        let bytes = encoded(&numbers.record(), None);
        for length in 0..bytes.len() {
            assert!(Record::decode(&bytes[..length], None).is_err());
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(Record::decode(&longer, None), Err(Unreadable::Corrupt));
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let error = Record::decode(&changed, None).unwrap_err();
            let version = bit < 8;
            assert_eq!(error == Unreadable::Version, version, "bit {bit}");
        }
    }
}

/// Replaces the checksum, so that the fields behind it are read.
fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
    let at = bytes.len() - 8;
    let sum = Sha256::digest(&bytes[..at]);
    bytes[at..].copy_from_slice(&sum[..8]);
    bytes
}

#[test]
fn no_bytes_behind_a_valid_checksum_cause_a_panic() {
    let mut numbers = Numbers(3);
    let mut readable = 0;
    for _ in 0..20_000 {
        let mut bytes = encoded(&numbers.record(), None);
        for _ in 0..=numbers.below(3) {
            let place = 1 + numbers.below(bytes.len() as u64 - 1);
            bytes[place] = numbers.next() as u8;
        }
        bytes.truncate(9 + numbers.below(bytes.len() as u64 - 8));
        readable += usize::from(Record::decode(&summed(bytes), None).is_ok());
    }
    for _ in 0..20_000 {
        let mut bytes = numbers.bytes(80);
        bytes.splice(..0, [1, 0, 0]);
        bytes.extend([0; 8]);
        readable += usize::from(Record::decode(&summed(bytes), None).is_ok());
    }
    assert!(readable > 0, "some changes leave a record readable");
}

#[test]
fn numbers_beyond_64_bits_are_unreadable() {
    let mut record = vec![1, 0, 0];
    record.extend([0; 32]);
    for (varint, readable) in [
        (
            vec![0xFF; 9].into_iter().chain([1]).collect::<Vec<_>>(),
            true,
        ),
        (vec![0xFF; 9].into_iter().chain([2]).collect(), false),
        (vec![0xFF; 10].into_iter().chain([0]).collect(), false),
    ] {
        let mut bytes = record.clone();
        bytes.extend(varint);
        bytes.extend([0, 200, 0, 0]);
        bytes.extend([0; 8]);
        assert_eq!(Record::decode(&summed(bytes), None).is_ok(), readable);
    }
}

#[test]
fn a_seal_opens_only_the_records_of_its_lock() {
    let record = Numbers(4).record();
    let of = |context| Sealing {
        seal: &Shift,
        context,
    };
    let sealed = encoded(&record, Some(of(b"lockkit:pay:7")));
    for sealing in [None, Some(of(b"lockkit:pay:8"))] {
        assert_eq!(Record::decode(&sealed, sealing), Err(Unreadable::Seal));
    }
    let open = encoded(&record, None);
    let strict = Some(of(b"lockkit:pay:7"));
    assert_eq!(Record::decode(&open, strict), Err(Unreadable::Seal));
}

/// Only the seal protects a record from a client of the store, which can make a checksum too.
#[test]
fn every_field_of_a_sealed_record_is_under_its_seal() {
    let mut numbers = Numbers(5);
    let sealing = Some(Sealing {
        seal: &Shift,
        context: b"lockkit:pay:7",
    });
    for _ in 0..20 {
        let bytes = encoded(&numbers.record(), sealing);
        let sealed = bytes.windows(13).position(|at| at == b"lockkit:pay:7");
        for bit in 0..sealed.unwrap() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let decoded = Record::decode(&summed(changed), sealing);
            assert!(decoded.is_err(), "bit {bit}");
        }
    }
}

#[test]
fn a_small_answer_adds_about_a_hundred_bytes_to_its_body() {
    let headers = HeaderMap::from_iter([(
        http::header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    )]);
    let record = Record {
        request: Fingerprinted {
            digest: [0; 32],
            read: 1_000,
            ended: true,
        },
        status: StatusCode::CREATED,
        headers,
        body: Bytes::from(vec![b'x'; 300]),
        trailers: None,
    };
    assert_eq!(encoded(&record, None).len() - 300, 68);
}
