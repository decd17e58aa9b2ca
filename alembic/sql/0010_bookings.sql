-- Appointments, and what was sent before each of them.
CREATE TABLE wakebell.bookings (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    ref text NOT NULL UNIQUE                        -- whoever booked names it
);
