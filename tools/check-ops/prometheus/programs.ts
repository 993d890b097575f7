import type { NeededProgram } from '../programs/needed-programs.ts';

export const PROMTOOL: NeededProgram = { name: 'promtool', aptPackage: 'prometheus' };
export const PROMETHEUS: NeededProgram = { name: 'prometheus', aptPackage: 'prometheus' };
