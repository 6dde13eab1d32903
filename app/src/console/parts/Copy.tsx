/** Text to take elsewhere: a command, a link, a secret that is shown once. */
export { CopyText as Copy } from "../../components/parts";
