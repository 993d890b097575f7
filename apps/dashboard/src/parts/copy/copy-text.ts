/**
 * Copies text. Over plain http, and in some frames, browsers have no clipboard for scripts: there it is selected and
 * copied.
 */
export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copySelected(text);
  }
}

function copySelected(text: string): void {
  const field = document.createElement('textarea');
  field.value = text;
  field.readOnly = true;
  field.style.position = 'fixed';
  field.style.opacity = '0';
  document.body.append(field);
  field.select();
  // Deprecated and without a successor where `navigator.clipboard` is missing.
  // oxlint-disable-next-line typescript/no-deprecated
  document.execCommand('copy');
  field.remove();
}
