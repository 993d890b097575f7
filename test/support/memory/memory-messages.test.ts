import { messageListContract } from '../contract/message-list-contract.ts';
import { listDepsOf } from './memory-messages.ts';

messageListContract((stored) =>
  Promise.resolve({ ...listDepsOf(stored), close: () => Promise.resolve() }),
);
