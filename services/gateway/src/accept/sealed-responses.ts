import type { Message } from '@posthorn/domain/message.ts';
import type { Vault } from '@posthorn/platform/vault/vault.ts';
import type { CreatedMessage } from '../http/responses/message.ts';

/** The first response to a request with an idempotency key, as its message stores it. */
export interface SealedResponses {
  seal: (message: Message, response: CreatedMessage) => string;
  /** Throws SealedValueError when the stored response cannot be decrypted, or when there is none. */
  open: (message: Message) => CreatedMessage;
}

/**
 * Responses are encrypted as the secrets of webhooks are: they show headers, whose values may be
 * credentials.
 */
export function createSealedResponses(vault: Vault): SealedResponses {
  const bindingOf = ({ companyId, id }: Message) => ({ companyId, ownerId: id, field: 'answer' });
  return {
    seal: (message, response) =>
      vault.seal(JSON.stringify({ ...response, payload: '' }), bindingOf(message)),
    open(message) {
      const sealed = message.idempotency?.answer ?? '';
      const response = JSON.parse(vault.open(sealed, bindingOf(message))) as CreatedMessage;
      // `payload` keeps its position among the members, so that a repeat gets the same bytes.
      return { ...response, payload: message.payload };
    },
  };
}
