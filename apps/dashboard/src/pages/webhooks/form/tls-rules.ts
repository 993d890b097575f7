import type { components } from '@posthorn/client';

type TlsBody = Pick<components['schemas']['UpdateWebhook'], 'tls'>;

export const TLS_PARTS = ['certificate', 'key', 'ca'] as const;

/** Returns the TLS settings that a form asks for. Without any, those that the webhook has stay. */
export function tlsBody(form: FormData): TlsBody {
  if (form.get('isTlsRemoved') !== null) return { tls: null };
  const given = TLS_PARTS.flatMap((part) => {
    const pem = form.get(`tls.${part}`);
    return typeof pem === 'string' && pem.trim() !== '' ? [[part, pem.trim()] as const] : [];
  });
  return given.length === 0 ? {} : { tls: Object.fromEntries(given) };
}
