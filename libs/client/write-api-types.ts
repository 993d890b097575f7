import { writeFileSync } from 'node:fs';
import { API_TYPES_FILE, createApiTypes } from './api-types.ts';

/** Writes the types of the API that the client is built on, from the routes of the gateway. */
writeFileSync(API_TYPES_FILE, await createApiTypes());
