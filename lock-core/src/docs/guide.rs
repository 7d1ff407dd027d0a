#![doc = include_str!("guide/index.md")]

pub mod choosing {
    #![doc = include_str!("guide/choosing.md")]
}

pub mod sharing {
    #![doc = include_str!("guide/sharing.md")]
}

pub mod several {
    #![doc = include_str!("guide/several.md")]
}

pub mod blocking {
    #![doc = include_str!("guide/blocking.md")]
}

pub mod failures {
    #![doc = include_str!("guide/failures.md")]
}

pub mod database {
    #![doc = include_str!("guide/database.md")]
}

pub mod once {
    #![doc = include_str!("guide/once.md")]
}

pub mod fencing {
    #![doc = include_str!("guide/fencing.md")]
}

pub mod jobs {
    #![doc = include_str!("guide/jobs.md")]
}

pub mod testing {
    #![doc = include_str!("guide/testing.md")]
}

pub mod production {
    #![doc = include_str!("guide/production.md")]
}

pub mod observing {
    #![doc = include_str!("guide/observing.md")]
}

pub mod operator {
    #![doc = include_str!("guide/operator.md")]
}

pub mod guarantees {
    #![doc = include_str!("guide/guarantees.md")]
}

pub mod managed {
    #![doc = include_str!("guide/managed.md")]
}

pub mod postgres {
    #![doc = include_str!("guide/postgres.md")]
}

pub mod shutdown {
    #![doc = include_str!("guide/shutdown.md")]
}

pub mod tickets {
    #![doc = include_str!("guide/tickets.md")]
}

pub mod migrating {
    #![doc = include_str!("guide/migrating.md")]

    pub mod go {
        #![doc = include_str!("guide/migrating_go.md")]
    }

    pub mod java {
        #![doc = include_str!("guide/migrating_java.md")]
    }

    pub mod python {
        #![doc = include_str!("guide/migrating_python.md")]
    }

    pub mod rust {
        #![doc = include_str!("guide/migrating_rust.md")]
    }
}
