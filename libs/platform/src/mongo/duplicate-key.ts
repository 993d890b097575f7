/** The server's error code of a write that a unique index refuses (MongoDB, Error Codes). */
export const DUPLICATE_KEY = 11_000;
