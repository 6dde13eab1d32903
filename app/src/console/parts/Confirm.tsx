/** A button that asks once more in a dialog before something happens. */
export { Confirm } from "../../components/Dialog";
