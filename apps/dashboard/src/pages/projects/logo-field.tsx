import { Group, Text, TextInput } from '@mantine/core';
import { valueTo } from '../../parts/value-to.ts';
import type { LinkFieldsProps } from './portal-link-form.tsx';
import styles from './projects.module.css';

const TYPES = 'image/png,image/jpeg,image/webp,image/svg+xml';

/** A logo by its URL, or a file that goes with the theme: then no page has to be asked for it. */
export function LogoField({ draft: { logoUrl }, problems, change }: LinkFieldsProps) {
  const isFile = logoUrl.startsWith('data:');
  const setFile = (file: File | undefined): void => {
    if (file === undefined) return;
    const reader = new FileReader();
    reader.onload = () => {
      if (typeof reader.result === 'string') change({ logoUrl: reader.result });
    };
    reader.readAsDataURL(file);
  };
  return (
    <Group align="start" mt="md">
      <TextInput
        className={styles.logoUrl}
        label="Logo"
        description="An https URL at one of the origins of “Portal in a frame”, or a file"
        placeholder="https://app.example.com/logo.svg"
        value={isFile ? '' : logoUrl}
        error={problems.logoUrl}
        onChange={valueTo((url) => {
          change({ logoUrl: url.trim() });
        })}
      />
      <label className={styles.file}>
        <Text size="sm">Logo file, at most 48 kB</Text>
        <input
          type="file"
          accept={TYPES}
          onChange={({ currentTarget }) => {
            setFile(currentTarget.files?.[0]);
          }}
        />
      </label>
      {isFile && problems.logoUrl === undefined && (
        <img src={logoUrl} alt="The logo" className={styles.logo} />
      )}
    </Group>
  );
}
