import { AREAS } from './areas.ts';
import { WAYS_IN } from './ways-in.ts';

export const CHECKS = [...AREAS, ...WAYS_IN];
