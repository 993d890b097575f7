import type { Message } from '@posthorn/domain/message.ts';
import type { Vault } from '@posthorn/platform/vault/vault.ts';
import type { CreatedMessage } from '../http/answers/message.ts';

/** The first answer to a request with an idempotency key, as it lies in its message. */
export interface KeptAnswers {
  seal: (message: Message, answer: CreatedMessage) => string;
  /** Throws SealedValueError when it does not open. */
  open: (message: Message) => CreatedMessage;
}

/** Sealed like a webhook's secrets: the answer shows headers, and their values may be credentials. */
export function createKeptAnswers(vault: Vault): KeptAnswers {
  const bindingOf = ({ companyId, id }: Message) => ({ companyId, ownerId: id, field: 'answer' });
  return {
    seal: (message, answer) =>
      vault.seal(JSON.stringify({ ...answer, payload: '' }), bindingOf(message)),
    open(message) {
      const sealed = message.idempotency?.answer ?? '';
      const answer = JSON.parse(vault.open(sealed, bindingOf(message))) as CreatedMessage;
      // `payload` keeps its place among the members: the repeat equals the first answer byte for byte.
      return { ...answer, payload: message.payload };
    },
  };
}
