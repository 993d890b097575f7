const CERTIFICATE = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;

/** Returns the certificates of a text in PEM (RFC 7468), each a text; without the comments that bundles have. */
export function pemCertificatesIn(text: string): string[] {
  return text.match(CERTIFICATE) ?? [];
}

/** Whether the text has something else in PEM, such as a private key, or a certificate that is cut off. */
export function hasOtherPem(text: string): boolean {
  return text.replaceAll(CERTIFICATE, '').includes('-----');
}
