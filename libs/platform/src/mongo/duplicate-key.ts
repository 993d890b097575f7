/** The server's code for a write that a unique index refuses (MongoDB, Error Codes). */
export const DUPLICATE_KEY = 11_000;
