import type { Message } from '@posthorn/domain/message/message.ts';
import type { Vault } from '@posthorn/platform/vault/vault.ts';
import {
  describeAccepted,
  type CreatedMessage,
  type ShownWebhook,
} from '../http/responses/message.ts';

/** The first response to a request with an idempotency key, as its message stores it. */
export interface SealedResponses {
  /** Seals what cannot be rebuilt: the webhook may change, the message does not. */
  seal: (message: Message, shown: ShownWebhook) => string;
  /** Rejects with SealedValueError when what is stored cannot be decrypted, or when there is nothing. */
  open: (message: Message) => Promise<CreatedMessage>;
}

/**
 * What is kept is encrypted as the secrets of webhooks are: it shows headers, whose values may be
 * credentials.
 */
export function createSealedResponses(vault: Vault): SealedResponses {
  const bindingOf = ({ companyId, id }: Message) => ({ companyId, ownerId: id, field: 'answer' });
  return {
    seal: (message, { signature, headers }) =>
      vault.seal(JSON.stringify({ signature, headers }), bindingOf(message)),
    async open(message) {
      const sealed = message.idempotency?.answer ?? '';
      // Earlier versions sealed the whole response, of which these two fields are a part.
      const shown = JSON.parse(vault.open(sealed, bindingOf(message))) as ShownWebhook;
      return describeAccepted(message, shown);
    },
  };
}
