-- Every process runs this script when it starts, and several may run it at once on one file. So each
-- statement may be repeated.

CREATE TABLE IF NOT EXISTS products (
    lane    TEXT    NOT NULL CHECK (lane IN ('plain', 'locked')),
    sku     TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    cents   INTEGER NOT NULL,
    initial INTEGER NOT NULL,
    stock   INTEGER NOT NULL CHECK (stock >= 0),
    -- The fencing token of the last write; a write with a lower one is refused.
    fence   INTEGER NOT NULL DEFAULT 0,
    -- The same for the last change of the price, under another lock.
    price_fence INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (lane, sku)
) STRICT;

CREATE TABLE IF NOT EXISTS orders (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    lane       TEXT    NOT NULL,
    sku        TEXT    NOT NULL,
    user       TEXT    NOT NULL,
    quantity   INTEGER NOT NULL CHECK (quantity > 0),
    cents      INTEGER NOT NULL,
    fence      INTEGER NOT NULL,
    created_at TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    FOREIGN KEY (lane, sku) REFERENCES products (lane, sku)
) STRICT;

CREATE INDEX IF NOT EXISTS orders_by_product ON orders (lane, sku);

-- One report for each day of the shop. It covers the orders since the report before.
CREATE TABLE IF NOT EXISTS nights (
    -- The end of the tick that the report belongs to, in ms of Unix time.
    ends       INTEGER PRIMARY KEY,
    orders     INTEGER NOT NULL,
    cents      INTEGER NOT NULL,
    last_order INTEGER NOT NULL,
    -- The process that has written it.
    port       INTEGER NOT NULL
) STRICT;

-- Every lane has a shelf of its own, so that one lane does not change the stock of the other.
INSERT OR IGNORE INTO products (lane, sku, name, cents, initial, stock) VALUES
    ('plain',  'mug',  'Enamel mug', 1800, 10, 10),
    ('locked', 'mug',  'Enamel mug', 1800, 10, 10),
    ('plain',  'lamp', 'Desk lamp',  6400, 10, 10),
    ('locked', 'lamp', 'Desk lamp',  6400, 10, 10);

-- What customers were charged. No unique column prevents a second charge for one request, so that the page can show what
-- does.
CREATE TABLE IF NOT EXISTS charges (
    id    INTEGER PRIMARY KEY AUTOINCREMENT,
    user  TEXT    NOT NULL,
    cents INTEGER NOT NULL CHECK (cents > 0)
) STRICT;

-- Gift cards, between which money moves.
CREATE TABLE IF NOT EXISTS cards (
    name  TEXT    PRIMARY KEY,
    cents INTEGER NOT NULL CHECK (cents >= 0),
    -- The fencing token of the last write, as in `products`.
    fence INTEGER NOT NULL DEFAULT 0
) STRICT;

INSERT OR IGNORE INTO cards (name, cents) VALUES ('red', 10000), ('green', 10000), ('blue', 10000);
